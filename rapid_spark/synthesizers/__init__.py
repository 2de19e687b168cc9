"""Synthesizers: CART synthesis, and the protocol for any other generator."""

from rapid_spark.synthesizers.cart import CartSynthesizer
from rapid_spark.synthesizers.command import CommandSynthesizer
from rapid_spark.synthesizers.make import Generator, make_synthesizer, planned_release
from rapid_spark.synthesizers.protocol import Synthesizer, replicates
from rapid_spark.synthesizers.sdv import SdvSynthesizer
from rapid_spark.synthesizers.simple import RowSynthesizer, SwappedSynthesizer

__all__ = [
    "CartSynthesizer",
    "CommandSynthesizer",
    "Generator",
    "RowSynthesizer",
    "SdvSynthesizer",
    "SwappedSynthesizer",
    "Synthesizer",
    "make_synthesizer",
    "planned_release",
    "replicates",
]
