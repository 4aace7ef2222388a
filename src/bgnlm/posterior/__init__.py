"""What visited models say: probabilities of models and features, and how far to trust them."""
