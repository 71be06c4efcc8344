package main

import (
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStatementsOf(t *testing.T) {
	t.Parallel()
	got, err := statementsOf("1764428400.500 LOG:  duration: 12.250 ms  statement: commit\n" +
		"1764428401.000 LOG:  checkpoint starting: time\n" +
		"1764428402.000 LOG:  duration: 6.000 ms  execute stmt: INSERT INTO history\n\tVALUES ($1)\n")
	ended := time.UnixMilli(1764428400500)
	want := statements{
		{ended.Add(-12250 * time.Microsecond), ended, true},
		{time.UnixMilli(1764428401994), time.UnixMilli(1764428402000), false},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(statement{})); err != nil || diff != "" {
		t.Errorf("statementsOf: %v (-want +got)\n%s", err, diff)
	}
	one := sample{began: ended.Add(-time.Millisecond), created: ended.Add(time.Second)}
	if !got.during(one, true) || got.during(one, false) {
		t.Error("the commit, and nothing else, was during the first second")
	}
}

// The worst of four took 30 ms more in its second stage and 10 ms more in its third.
func TestLostIn(t *testing.T) {
	t.Parallel()
	of := func(stages ...int) sample {
		one := sample{}
		for _, ms := range stages {
			one.stages = append(one.stages, time.Duration(ms)*time.Millisecond)
		}
		return one
	}
	worst := of(1, 34, 15)
	if diff := cmp.Diff([]float64{0, 0.75, 0.25}, lostIn([]sample{worst}, []sample{of(1, 4, 5), of(1, 4, 5), worst, of(2, 4, 5)})); diff != "" {
		t.Errorf("lostIn (-want +got)\n%s", diff)
	}
}

func TestACollectionIsSeen(t *testing.T) {
	c := &collections{}
	one := sample{began: time.Now()}
	runtime.GC()
	one.created = time.Now()
	if c.note(); !c.during(one) {
		t.Error("the collection is not seen")
	}
	if c.during(sample{began: one.created, created: one.created.Add(time.Nanosecond)}) {
		t.Error("a collection is seen in a nanosecond without one")
	}
}
