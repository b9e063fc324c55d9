package results

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Quantiles are quantiles of durations in milliseconds. Each is one of the durations (nearest rank).
type Quantiles struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// QuantilesOf returns the quantiles of durations, or zeros. The 99th percentile of few durations is the longest one.
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

// Nearest returns a quantile of sorted values by nearest rank. The values must not be empty, and 0 < p <= 1.
func Nearest[T any](sorted []T, p float64) T {
	return sorted[int(math.Ceil(p*float64(len(sorted))))-1]
}

// Milliseconds returns a duration in milliseconds, with one decimal.
func Milliseconds(d time.Duration) float64 { return Round(float64(d) / float64(time.Millisecond)) }

// Seconds returns a duration in seconds, with two decimals.
func Seconds(d time.Duration) float64 { return Round2(d.Seconds()) }

// Mebibytes returns a size in MiB, with one decimal.
func Mebibytes(bytes int64) float64 { return Round(float64(bytes) / (1 << 20)) }

// Round rounds to one decimal.
func Round(value float64) float64 { return math.Round(value*10) / 10 }

// Round2 rounds to two decimals.
func Round2(value float64) float64 { return math.Round(value*100) / 100 }

// Total returns the sum of counts.
func Total(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// Keys returns the keys of all counts, each once and sorted.
func Keys(counts ...map[string]int) []string {
	all := map[string]int{}
	for _, c := range counts {
		maps.Copy(all, c)
	}
	return slices.Sorted(maps.Keys(all))
}
