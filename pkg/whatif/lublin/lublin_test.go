package lublin_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/whatif/lublin"
)

// The parts of the model that are published as such: a quarter of the jobs is serial, most
// others are of a power of two, and none is larger than the machine or runs for over two
// days. The means are those that follow from the published parameters.
func TestTheModel(t *testing.T) {
	t.Parallel()
	log, err := lublin.Generate(lublin.Config{Jobs: 50_000, Processors: 128, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var serial, powers, logRun float64
	for i, j := range log.Jobs {
		if j.Processors < 1 || j.Processors > 128 || float64(j.Run) > math.Exp(12) || i > 0 && j.Submit < log.Jobs[i-1].Submit {
			t.Fatalf("job %d is %+v", i, j)
		}
		if j.Processors == 1 {
			serial++
		} else if j.Processors&(j.Processors-1) == 0 {
			powers++
		}
		logRun += math.Log(float64(j.Run))
	}
	jobs := float64(len(log.Jobs))
	for name, c := range map[string]struct{ got, least, most float64 }{
		"serial":       {serial / jobs, 0.235, 0.255},
		"powers":       {powers / jobs, 0.57, 0.70}, // with sizes that are one by chance
		"log run time": {logRun / jobs, 5.0, 6.1},
		"between":      {float64(log.Jobs[len(log.Jobs)-1].Submit) / jobs, 700, 1500},
	} {
		t.Run(name, func(t *testing.T) {
			if c.got < c.least || c.got > c.most {
				t.Errorf("%.3f, want %g to %g", c.got, c.least, c.most)
			}
		})
	}
}

// Fewer jobs come at night than by day.
func TestTheDay(t *testing.T) {
	t.Parallel()
	log, err := lublin.Generate(lublin.Config{Jobs: 20_000, Processors: 64, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	var hours [24]int
	for _, j := range log.Jobs {
		hours[j.Submit/3600%24]++
	}
	if night, noon := hours[2]+hours[3]+hours[4], hours[13]+hours[14]+hours[15]; noon < 3*night {
		t.Errorf("%d jobs come in the night and %d in the afternoon: %v", night, noon, hours)
	}
}

func TestTheSeedAndTheLoadDecide(t *testing.T) {
	t.Parallel()
	config := lublin.Config{Jobs: 3000, Processors: 256, Seed: 7, Load: 0.8}
	log, err := lublin.Generate(config)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := lublin.Generate(config)
	if diff := cmp.Diff(log, again); diff != "" {
		t.Errorf("the same seed gives another log:\n%s", diff)
	}
	config.Seed++
	if other, _ := lublin.Generate(config); cmp.Equal(log, other) {
		t.Error("another seed gives the same log")
	}
	work := 0.0
	for _, j := range log.Jobs {
		work += float64(j.Run * j.Processors)
	}
	if load := work / 256 / float64(log.Jobs[len(log.Jobs)-1].Submit); load < 0.79 || load > 0.81 {
		t.Errorf("the load is %.3f, want 0.8", load)
	}
}

func TestWrongSettingsAreRefused(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]lublin.Config{
		"0 jobs: want 1 to":     {Processors: 8},
		"7 processors: want 8":  {Jobs: 1, Processors: 7},
		"load -1: want at most": {Jobs: 1, Processors: 8, Load: -1},
		"load NaN":              {Jobs: 1, Processors: 8, Load: math.NaN()},
	} {
		t.Run(want, func(t *testing.T) {
			if _, err := lublin.Generate(c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %q", c, err, want)
			}
		})
	}
}
