"""The risk-utility map: releases over mechanisms and epsilons, or any list, each attacked and measured."""
