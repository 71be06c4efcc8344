package figures_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/test/bench/figures"
)

func TestQuantile(t *testing.T) {
	t.Parallel()
	samples := []time.Duration{4, 1, 3, 2, 5}
	for _, test := range []struct {
		name    string
		samples []time.Duration
		q       float64
		want    time.Duration
	}{
		{"median", samples, 0.5, 3},
		{"the largest of a few is their p99", samples, 0.99, 5},
		{"none", nil, 0.5, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := figures.Quantile(test.samples, test.q); got != test.want {
				t.Errorf("Quantile(%v, %v) = %v, want %v", test.samples, test.q, got, test.want)
			}
		})
	}
}

func TestMedianAndSpread(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		of     []float64
		median float64
		spread string
	}{
		{"none", nil, 0, "-"},
		{"one", []float64{2}, 2, "-"},
		{"two", []float64{3, 1}, 2, "1.0 to 3.0"},
		{"three", []float64{3, 1, 2.5}, 2.5, "1.0 to 3.0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if median, spread := figures.Median(test.of), figures.Spread(test.of); median != test.median || spread != test.spread {
				t.Errorf("of %v the median is %v and the spread %q, want %v and %q", test.of, median, spread, test.median, test.spread)
			}
		})
	}
}

func TestMiddle(t *testing.T) {
	t.Parallel()
	samples := []time.Duration{time.Second, 2 * time.Millisecond, 3 * time.Millisecond, 1 * time.Millisecond}
	if got, want := figures.Middle(samples), "2.0 ms to 1000.0 ms"; got != want {
		t.Errorf("Middle of %v = %q, want %q", samples, got, want)
	}
	if got := figures.Middle(samples[:3]); got != "-" {
		t.Errorf("Middle of three = %q, want -", got)
	}
}

func TestBetween(t *testing.T) {
	t.Parallel()
	samples := []time.Duration{2 * time.Millisecond, 3 * time.Millisecond, time.Millisecond}
	if got, want := figures.Between(samples), "1.0 ms to 3.0 ms"; got != want {
		t.Errorf("Between of %v = %q, want %q", samples, got, want)
	}
	if got := figures.Between(samples[:1]); got != "-" {
		t.Errorf("Between of one = %q, want -", got)
	}
}

func TestHeaderHasTheLoad(t *testing.T) {
	t.Parallel()
	if got := figures.Header("Bursts"); !strings.HasPrefix(got, "Bursts (load before: ") {
		t.Errorf("Header = %q", got)
	}
}
