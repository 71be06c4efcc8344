package placement_test

import (
	"errors"
	"flag"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/spec/workload"
)

var (
	instances = flag.Int("placement.instances", 20_000, "how many random instances are compared with the brute-force oracle")
	firstSeed = flag.Uint64("placement.seed", 1, "seed of the first of them")
)

// TestAgreesWithBruteForce compares verdicts with an oracle that tries every
// node for every pod. Every certificate is verified, and so are all places.
func TestAgreesWithBruteForce(t *testing.T) {
	t.Parallel()
	var next, fits, not, unknown, searched atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(*instances) || t.Failed() {
					return
				}
				seed := *firstSeed + uint64(i)
				v := compare(t, seed)
				switch v.Outcome {
				case placement.Fits:
					fits.Add(1)
				case placement.DoesNotFit:
					not.Add(1)
					if v.Certificate.Proof == placement.Searched {
						searched.Add(1)
					}
				default:
					unknown.Add(1)
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d instances: %d fit, %d do not (%d of them by search), %d unknown", *instances, fits.Load(), not.Load(), searched.Load(), unknown.Load())
	if unknown.Load()*1000 >= int64(*instances) {
		t.Errorf("%d of %d are unknown", unknown.Load(), *instances)
	}
	if *instances >= 1000 && (fits.Load() < int64(*instances)/10 || searched.Load() < int64(*instances)/100) {
		t.Error("the instances are not varied enough to tell anything")
	}
}

func compare(t *testing.T, seed uint64) placement.Verdict {
	in := drawInstance(seed)
	f := in.fleet()
	nodes := f.Views()
	v := f.Solve(in.gang, placement.Budget)
	oracle := in.fits(nodes)
	switch v.Outcome {
	case placement.Fits:
		if err := certificate.Valid(nodes, in.gang, v.Placements); err != nil {
			t.Errorf("seed %d: places are wrong: %v\n%v\n%s", seed, err, v.Placements, in)
		}
		if !oracle {
			t.Errorf("seed %d: fits, but the oracle finds no places\n%s", seed, in)
		}
	case placement.DoesNotFit:
		if oracle {
			t.Errorf("seed %d: does not fit (%s: %v), but it does\n%s", seed, v.Certificate.Proof, v.Certificate.PodSets, in)
		} else if err := certificate.Check(nodes, in.gang, v.Certificate); err != nil {
			t.Errorf("seed %d: the certificate %+v is wrong: %v\n%s", seed, v.Certificate, err, in)
		}
		if v.Reason().Message == "" || v.Certificate.Shortage.Unplaced < 1 || v.Certificate.Shortage.Unplaced > v.Certificate.Shortage.Pods {
			t.Errorf("seed %d: shortage %+v", seed, v.Certificate.Shortage)
		}
		if err := checkShortage(&v.Certificate.Shortage); err != nil {
			t.Errorf("seed %d: %v: %+v\n%s", seed, err, v.Certificate.Shortage, in)
		}
	}
	return v
}

// checkShortage checks that a shortage of resources alone, when no pod of the set has a place,
// says of all eligible nodes what they lack.
func checkShortage(short *workload.Shortage) error {
	if short.Eligible == 0 || short.Constraint != "" || short.Unplaced < short.Pods {
		return nil
	}
	if len(short.Lacking) == 0 {
		if short.Largest >= short.Asked {
			return errors.New("the shortage has a node with enough and pods without one")
		}
		return nil
	}
	nodes := 0
	for _, l := range short.Lacking {
		nodes += l.Nodes
	}
	if nodes < short.Eligible || short.Largest < short.Asked || short.Lacking[0].Resource != short.Resource {
		return errors.New("the resources that are said to be lacking do not account for all eligible nodes")
	}
	return nil
}
