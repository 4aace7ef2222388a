"""Exports as ONNX: a graph of elementwise operations in double precision, one input for each column."""

from typing import Any

import numpy as np

from bgnlm._version import __version__
from bgnlm.errors import MissingExtraError
from bgnlm.report.export.graph import Node, column, in_order
from bgnlm.report.export.lowering import lowered
from bgnlm.report.export.program import (
    FARTHEST_INPUT,
    Program,
    SourceColumn,
    free_name,
    free_prefix,
    inverse_link,
    output_names,
)

_OPSET, _IR_VERSION = 19, 9  # the first with comparisons of texts
# Those that onnxruntime has had for double precision since 1.17; the rest is written in these.
_OPERATORS = {
    "neg": "Neg",
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "pow": "Pow",
    "sqrt": "Sqrt",
    "abs": "Abs",
    "sign": "Sign",
    "floor": "Floor",
    "ceil": "Ceil",
    "exp": "Exp",
    "log": "Log",
    "sin": "Sin",
    "tanh": "Tanh",
    "clip": "Clip",
    "where": "Where",
    "lt": "Less",
    "le": "LessOrEqual",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
    "eq": "Equal",
    "and": "And",
    "or": "Or",
    "not": "Not",
    "isnan": "IsNaN",
}


def to_onnx(program: Program) -> bytes:
    """A model with one input of shape (rows,) for each column, and its offset if it has one; NaN where refused."""
    return bytes(_Graph(program).model().SerializeToString())


class _Graph:
    """Collects nodes, inputs and constants."""

    def __init__(self, program: Program) -> None:
        try:
            import onnx
        except ImportError as error:
            raise MissingExtraError(
                "This export needs onnx, which is not installed. Run: pip install 'bgnlm[onnx]'"
            ) from error
        self._onnx, self._program = onnx, program
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._constants: dict[Any, tuple[str, Any]] = {}
        self._names: dict[Node, str] = {}
        columns = [one.name for one in program.columns]
        self._prefix = free_prefix(columns)
        self._offset = free_name("offset", columns)
        self._output = free_name("probabilities" if program.has_shares else "prediction", columns)

    def model(self) -> Any:
        """The whole model."""
        helper, types = self._onnx.helper, self._onnx.TensorProto
        refused = [self._read(one) for one in self._inputs_of_program()]
        if self._program.has_offset:
            self._input(self._offset, types.DOUBLE)
        self._guarded(self._result(), refused)
        shape = ["rows", len(self._program.classes or ())] if self._has_classes else ["rows"]
        graph = helper.make_graph(
            self._nodes,
            "bgnlm",
            self._inputs,
            [helper.make_tensor_value_info(self._output, types.DOUBLE, shape)],
            [tensor for _, tensor in self._constants.values()],
            doc_string=f"{self._program.using} of {self._program.response}",
        )
        opset = [helper.make_opsetid("", _OPSET)]
        model = helper.make_model(
            graph, opset_imports=opset, ir_version=_IR_VERSION, producer_name="bgnlm", producer_version=__version__
        )
        self._onnx.checker.check_model(model)
        return model

    @property
    def _has_classes(self) -> bool:
        """Whether there is a value for each class."""
        return len(output_names(self._program)) > 1

    def _inputs_of_program(self) -> tuple[SourceColumn, ...]:
        """At least one column, from which the number of rows is known."""
        return self._program.used_columns or self._program.columns[:1]

    def _add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"{self._prefix}v{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def _input(self, name: str, kind: int) -> str:
        self._inputs.append(self._onnx.helper.make_tensor_value_info(name, kind, ["rows"]))
        return name

    def _constant(self, value: Any, *, as_text: bool = False) -> str:
        key = ("text", value) if as_text else np.asarray(value).tobytes() + repr(np.shape(value)).encode()
        if key not in self._constants:
            array = np.array(value, dtype=object) if as_text else np.asarray(value)
            name = f"{self._prefix}c{len(self._constants)}"
            self._constants[key] = name, self._onnx.numpy_helper.from_array(array, name)
        return self._constants[key][0]

    def _read(self, one: SourceColumn) -> str:
        """Read a column; return where its values are refused."""
        types = self._onnx.TensorProto
        own = list(one.coded[:-1] if one.indicator else one.coded)
        if one.kind == "categorical":
            value = self._input(one.name, types.STRING)
            gone = self._add("Equal", value, self._constant("", as_text=True))
            for coded, level in zip(own, one.levels, strict=True):
                found = self._add("Equal", value, self._constant(level, as_text=True))
                self._names[column(coded)] = self._add("Cast", found, to=types.DOUBLE)
            refused = (
                gone if one.fill is None and "" not in (one.reference, *one.levels) else self._add("Xor", gone, gone)
            )
        else:
            value = self._input(one.name, types.DOUBLE)
            gone = self._add("IsNaN", value)
            filled = value
            if one.fill is not None:
                filled = self._add("Where", gone, self._constant(np.float64(one.fill)), value)
            self._names[column(own[0])] = filled
            limit = self._constant(np.float64(FARTHEST_INPUT))
            refused = self._add("Not", self._add("LessOrEqual", self._add("Abs", filled), limit))
            if one.kind == "boolean":
                ends = [self._add("Equal", filled, self._constant(np.float64(end))) for end in (0.0, 1.0)]
                refused = self._add("Not", self._add("Or", *ends))
        if one.indicator:
            self._names[column(one.coded[-1])] = self._add("Cast", gone, to=types.DOUBLE)
        return refused

    def _values(self, roots: list[Node]) -> list[str]:
        simple = lowered(roots, _OPERATORS)
        wanted = [simple[root] for root in roots]
        for node in in_order(wanted):
            if node not in self._names:
                if isinstance(node.value, float):
                    self._names[node] = self._constant(np.float64(node.value))
                else:
                    self._names[node] = self._add(_OPERATORS[node.op], *(self._names[one] for one in node.args))
        return [self._names[node] for node in wanted]

    def _result(self) -> str:
        program = self._program
        columns = self._values(program.standardised())
        table = self._stacked(columns) if columns else self._rows_alone()
        means = [self._mean(k, table, len(columns)) for k in range(len(program.parts))]
        if not self._has_classes:
            return means[0]
        if program.of != "mean":
            return self._stacked(means)
        if len(means) == 1:
            return self._stacked([self._add("Sub", self._constant(np.float64(1.0)), means[0]), means[0]])
        return self._normalised(self._stacked(means), len(means))

    def _rows_alone(self) -> str:
        """A table with one column of zeros."""
        first = self._inputs[0].name
        shape = self._add("Concat", self._add("Shape", first), self._constant(np.array([1])), axis=0)
        zero = self._onnx.numpy_helper.from_array(np.zeros(1), "zero")
        return self._add("ConstantOfShape", shape, value=zero)

    def _stacked(self, columns: list[str]) -> str:
        axis = self._constant(np.array([1]))
        return self._add("Concat", *(self._add("Unsqueeze", one, axis) for one in columns), axis=1)

    def _mean(self, k: int, table: str, n_columns: int) -> str:
        """Average of the means of all models: linear predictors are one product of matrices."""
        part = self._program.parts[k]
        slopes = np.zeros((max(n_columns, 1), len(part)))
        intercepts = np.empty(len(part))
        for m in range(len(part)):
            _, intercepts[m], terms = part.model(m)
            for j, coefficient in terms:
                slopes[j, m] = coefficient
        eta = self._add("Add", self._add("MatMul", table, self._constant(slopes)), self._constant(intercepts))
        if self._program.has_offset:
            each = self._add("Unsqueeze", self._offset, self._constant(np.array([1])))
            eta = self._add("Add", eta, self._add("Mul", each, self._constant(part.offsets[None, :])))
        symbol = column(f"\0eta{k}")
        self._names[symbol] = eta
        mean = self._values([inverse_link(self._program.link, symbol)])[0]
        return self._add("MatMul", mean, self._constant(np.asarray(part.probabilities)))

    def _normalised(self, shares: str, n_classes: int) -> str:
        axis = self._constant(np.array([1]))
        totals = self._add("ReduceSum", shares, axis, keepdims=1)
        is_positive = self._add("Greater", totals, self._constant(np.float64(0.0)))
        return self._add(
            "Where", is_positive, self._add("Div", shares, totals), self._constant(np.float64(1 / n_classes))
        )

    def _guarded(self, result: str, refused: list[str]) -> None:
        """NaN in rows that `predict` refuses."""
        anywhere = refused[0]
        for one in refused[1:]:
            anywhere = self._add("Or", anywhere, one)
        if self._has_classes:
            anywhere = self._add("Unsqueeze", anywhere, self._constant(np.array([1])))
        nothing = self._constant(np.float64(np.nan))
        self._nodes.append(self._onnx.helper.make_node("Where", [anywhere, nothing, result], [self._output]))
