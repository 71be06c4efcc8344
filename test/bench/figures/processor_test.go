package figures_test

import (
	"os"
	"testing"
	"time"

	"muster.dev/muster/test/bench/figures"
)

func TestProcessTimeOfThisProcess(t *testing.T) {
	began := time.Now()
	for figures.ProcessTime(os.Getpid()) == 0 && time.Since(began) < time.Minute { // use processor time
		_ = figures.Quantile([]time.Duration{2, 1}, 0.5)
	}
	if got := figures.ProcessTime(os.Getpid()); got <= 0 || got > time.Hour {
		t.Errorf("ProcessTime of this process = %v, want some", got)
	}
}
