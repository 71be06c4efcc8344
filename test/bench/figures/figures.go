// Package figures computes and prints what measurements show: quantiles, spreads, processor time, and
// how busy the machine was. It is for programs that measure, not for tests.
package figures

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Load is the machine's load average of a minute.
func Load() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(content), " ")
	return first
}

// Header is the first line of a table: what it shows, and the load before it was taken.
func Header(what string) string { return fmt.Sprintf("%s (load before: %s)", what, Load()) }

// Quantile returns the quantile of samples; zero of none.
func Quantile(samples []time.Duration, q float64) time.Duration {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// Median returns the median; zero of none.
func Median(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(figures))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// Spread returns the smallest and the largest figure as a text; "-" of fewer than two.
func Spread(figures []float64) string {
	if len(figures) < 2 {
		return "-"
	}
	return fmt.Sprintf("%.1f to %.1f", slices.Min(figures), slices.Max(figures))
}

// Middle returns what half of the samples are between, as a text; "-" of fewer than four.
func Middle(samples []time.Duration) string {
	if len(samples) < 4 {
		return "-"
	}
	return Millis(Quantile(samples, 0.25)) + " to " + Millis(Quantile(samples, 0.75))
}

// Between returns the smallest and the largest sample as a text; "-" of fewer than two.
func Between(samples []time.Duration) string {
	if len(samples) < 2 {
		return "-"
	}
	return Millis(slices.Min(samples)) + " to " + Millis(slices.Max(samples))
}

// Millis returns a duration in milliseconds.
func Millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
