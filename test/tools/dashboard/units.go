package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// scale is a unit from a value on.
type scale struct {
	from float64
	unit string
}

var scales = map[string][]scale{
	"s":     {{3600, " h"}, {60, " min"}, {1, " s"}, {0.001, " ms"}},
	"bytes": {{1 << 30, " GiB"}, {1 << 20, " MiB"}, {1 << 10, " KiB"}, {1, " B"}},
	"short": {{1e6, " Mil"}, {1e3, " K"}, {1, ""}},
	"ops":   {{1, " ops/s"}},
	"reqps": {{1, " req/s"}},
}

// show writes a value in a unit of Grafana.
func show(unit string, v float64) (string, error) {
	known, ok := scales[unit]
	if !ok {
		return "", fmt.Errorf("the unit %q is not known here", unit)
	}
	if v == 0 {
		return "0" + known[slices.IndexFunc(known, func(s scale) bool { return s.from == 1 })].unit, nil
	}
	chosen := known[len(known)-1]
	for _, s := range known {
		if math.Abs(v) >= s.from {
			chosen = s
			break
		}
	}
	return strconv.FormatFloat(round(v/chosen.from), 'f', -1, 64) + chosen.unit, nil
}

// round leaves three digits, which are enough for a picture.
func round(v float64) float64 {
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	factor := math.Pow10(digits)
	return math.Round(v*factor) / factor
}
