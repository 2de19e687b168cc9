"""The package rapid-spark: what it needs, and what may be added (see the README for which extra is for whom)."""

from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
version: dict[str, str] = {}
exec((HERE / "rapid_spark" / "version.py").read_text(encoding="utf-8"), version)

CORE = [
    "numpy>=1.26,<3",
    "pandas>=2.2,<4",
    "pyarrow>=18,<27",
    "scikit-learn>=1.6,<2",
    "scipy>=1.11,<2",
    "statsmodels>=0.14.2,<0.16",
    "mlflow-skinny>=3.0,<4",
    "matplotlib>=3.8,<4",
    "pydantic>=2.7,<3",
    "pyyaml>=6,<7",
    "click>=8.1,<9",
    "rich>=13.7,<16",
]
# Spark is never in the core: on Databricks an installed pyspark breaks the one that is there.
SPARK = ["pyspark[connect]>=4.0,<4.4", "pandas<3"]
# Spark and Delta that belong together; the newest of each do not.
DELTA = ["pyspark[connect]==4.2.0", "delta-spark==4.4.0", "pandas<3"]
RELEASE = ["opendp>=0.16,<0.17", "dp-accounting>=0.6,<0.7"]
# Not part of this package's licence: SDV has its own (Business Source License). CTGAN and TVAE bring PyTorch.
SDV = ["sdv>=2,<3"]
# Files of SPSS, Stata and SAS as input.
STATISTICAL = ["pyreadstat>=1.2,<2"]
LOCAL = ["mlflow>=3.8,<4", "skops>=0.11,<1", *RELEASE]
TEST = [
    *DELTA,
    *LOCAL,
    *STATISTICAL,
    "pytest>=8,<10",
    "pytest-xdist>=3.7,<4",
    "setuptools>=70.1",  # bdist_wheel, which Python 3.11's own does not bring
    "hypothesis>=6.100,<7",
    "deltalake>=1.5,<2",
    "databricks-bundles>=1.22,<2",
    "ruff>=0.15,<0.18",
    "mypy>=2,<2.5",
    "pandas-stubs>=3.0,<3.2",
    "types-PyYAML",
    "build>=1.2,<2",
]

setup(
    name="rapid-spark",
    version=version["__version__"],
    description="RAPID: how well a published table lets sensitive attributes of real people be predicted, on Spark",
    long_description=(HERE / "README.md").read_text(encoding="utf-8") if (HERE / "README.md").exists() else "",
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.11",
    packages=[*find_packages(include=["rapid_spark", "rapid_spark.*"]), "rapid_spark.conf", "rapid_spark.conf.sql"],
    # conf/ stands at the top, where users look for it, and travels inside the package.
    package_dir={"rapid_spark": "rapid_spark", "rapid_spark.conf": "conf", "rapid_spark.conf.sql": "conf/sql"},
    package_data={
        "rapid_spark": ["py.typed"],
        "rapid_spark.conf": ["*.yml", "*.properties"],
        "rapid_spark.conf.sql": ["*.sql"],
    },
    include_package_data=False,
    install_requires=CORE,
    extras_require={
        "spark": SPARK, "delta": DELTA, "local": LOCAL, "release": RELEASE, "sdv": SDV, "statistical": STATISTICAL,
        "test": TEST,
    },  # fmt: skip
    entry_points={
        "console_scripts": [
            "rapid-spark = rapid_spark.cli:main",
            "rapid-spark-job = rapid_spark.cli:job",
        ]
    },
)
