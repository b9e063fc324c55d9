package results

import (
	"math"
	"slices"
	"time"
)

// Quantiles describe times, in milliseconds. Each is one of the times (nearest rank): nothing is interpolated.
type Quantiles struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// QuantilesOf describes times; of few, the 99th percentile is the longest. Without times all is zero.
func QuantilesOf(times []time.Duration) Quantiles {
	if len(times) == 0 {
		return Quantiles{}
	}
	sorted := slices.Sorted(slices.Values(times))
	return Quantiles{
		Count: len(sorted), P50: Milliseconds(Nearest(sorted, 0.5)), P99: Milliseconds(Nearest(sorted, 0.99)),
		Max: Milliseconds(Nearest(sorted, 1)),
	}
}

// Nearest is the quantile of sorted values, of which there is one at least, by nearest rank: p is more than 0 and at most 1.
func Nearest[T any](sorted []T, p float64) T {
	return sorted[int(math.Ceil(p*float64(len(sorted))))-1]
}

// Milliseconds of a time, with one digit after the point.
func Milliseconds(d time.Duration) float64 { return Round(float64(d) / float64(time.Millisecond)) }

// Round keeps one digit after the point.
func Round(value float64) float64 { return math.Round(value*10) / 10 }
