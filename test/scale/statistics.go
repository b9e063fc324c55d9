package main

import (
	"math"
	"slices"
	"time"
)

// quantiles describe times, in milliseconds.
type quantiles struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// quantilesOf describes times; of few, the 99th percentile is the longest.
func quantilesOf(times []time.Duration) quantiles {
	if len(times) == 0 {
		return quantiles{}
	}
	sorted := slices.Sorted(slices.Values(times))
	nearest := func(p float64) float64 {
		return milliseconds(sorted[int(math.Ceil(p*float64(len(sorted))))-1])
	}
	return quantiles{Count: len(sorted), P50: nearest(0.5), P99: nearest(0.99), Max: nearest(1)}
}
