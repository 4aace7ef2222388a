"""The authors' raw files, made from the finished tables: the other way round than `bgnlm.datasets.derive`.

Where `EXACT` says so, the result is the original to the byte. In the others, what the tables left out is invented.
"""

import csv

from tests.datasets.r_sampler import draw

EXACT = ("breast_cancer", "spam", "abalone", "exoplanets")


def make_raw(name: str, table: str) -> list[bytes]:
    """The contents of the raw files in the order of the recipe."""
    header, *rows = csv.reader(table.splitlines())
    return MAKERS[name](header, rows)


def breast_cancer(header, rows):
    names = [name.replace("concave_points", "concave.points") for name in header[2:]]
    first = ",".join(f'"{name}"' for name in ["", *names, "X"])
    numbered = [(split, ",".join([f'"{k}"', *inputs, y])) for k, (split, y, *inputs) in enumerate(rows, start=1)]
    return [lines([first, *(line for split, line in numbered if split == part)]) for part in ("train", "test")]


def spam(header, rows):
    data = lines(" ".join([*inputs, y]) for _, y, *inputs in rows)
    return [data, lines("1" if split == "train" else "0" for split, *_ in rows)]


def abalone(header, rows):
    sexes = {("1", "0"): "M", ("0", "1"): "F", ("0", "0"): "I"}
    data = lines(",".join([sexes[tuple(row[-2:])], *row[2:-2], row[1]]) for row in rows)
    test_rows = draw(40590, 4176, 1000, rejection=False)
    return [data, lines(['"";"x"', *(f'"{k}";{row}' for k, row in enumerate(test_rows, start=1))])]


def asteroids(header, rows):
    fields = (
        "neo,desn,absolute_magnitude,magnitude_slope,epoch,mean_anomaly,argument_of_perihelion,"
        "longitude_of_the_ascending_node,inclination,eccentricity,mean_motion,semi_major_axis,ref1,ref2,observations,"
        "oppostions,time_of_perihelion_passage, rms_residual,Polarization,rotation_period,computer,classification,desn,"
        "label,last_observation"
    )
    parts = {(split, neo): [fields] for split in ("train", "test") for neo in "01"}
    for split, neo, mag, *orbit, rms in rows:
        middle = "0,MPO1,9,3,1990-2016"
        end = 'M-v,3Eh,MPC,8,-1,Jos\xe9 "O\'Brien"\x85,20160101'
        parts[split, neo].append(f"{neo},k1,{mag},0.15,K161D,{','.join(orbit)},{middle},{rms},{end}")
    neas = parts["test", "1"]
    for number in range(17):
        broken = neas[1].split(",")
        broken[(2, 5, 6, 7, 8, 9, 10, 11, 17)[number % 9]] = ("", "K161D", "nan", "1_0", "inf")[number % 5]
        neas.insert(10 * number + 5, ",".join(broken[: 20 if number % 2 else None]))
    neas += ["", ""]
    return ["\n".join(part).encode("latin-1") for part in parts.values()]


def exoplanets(header, rows):
    names = ["TypeFlag", "PlanetaryMassJpt", "RadiusJpt", "PeriodDays", "SemiMajorAxisAU", *header[5:]]
    order = [header.index(name) for name in names]
    text = [",".join(f'"{name}"' for name in names), *(",".join(row[j] for j in order) for row in rows)]
    return ["\n".join(text).encode()]


def epigenetic(header, rows):
    first = (
        ",chrom,pos,strand,mc_class,methylated_bases,total_bases,methylation_call,base_dist,CHG,CG,CHH,DT1,DT2,DT3,DT4,"
        "DT5,DT6_20,DT20_inf,unmethylated_bases,MIKC,Mα,Mβ,Mγ,Mδ,none,coding,promoter,aftron,express_noisy,express"
    )
    names = first.split(",")
    greek = {"Mα": "M_alpha", "Mγ": "M_gamma", "Mδ": "M_delta"}
    text = [first]
    for number, row in enumerate(rows, start=49906):
        cells = dict(zip(header, row, strict=True)) | {"": str(number), "express": "TRUE"}
        text.append(",".join(cells.get(greek.get(name, name), "0") for name in names))
    return [lines(text)]


def lines(texts):
    return "".join(f"{text}\n" for text in texts).encode()


MAKERS = {
    "breast_cancer": breast_cancer,
    "spam": spam,
    "abalone": abalone,
    "asteroids": asteroids,
    "exoplanets": exoplanets,
    "epigenetic": epigenetic,
}
