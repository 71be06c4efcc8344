// Command packing measures how full the packing of package placement makes a
// cluster, on the trace and by the rules of "Beware of Fragmentation" (Weng et
// al., USENIX ATC 2023): all pods of Alibaba's openb trace and copies of random
// ones until they ask 130 % of the GPUs, in random order, placed one by one
// without departures. It prints the part of the GPUs that is given to pods when
// they have asked for all of them once, and at the end.
//
//	go run ./test/packing -data DIR
//
// DIR holds openb_node_list_gpu_node.csv and openb_pod_list_default.csv of
// cluster-trace-gpu-v2023; without it the command says so and does nothing.
package main

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
)

func main() {
	dir := flag.String("data", os.Getenv("MUSTER_OPENB"), "directory of the openb trace (MUSTER_OPENB)")
	seeds := flag.Int("seeds", 10, "number of random orders")
	flag.Parse()
	if *dir == "" {
		fmt.Println("packing: skipped, no trace: name the directory of openb with -data or MUSTER_OPENB")
		return
	}
	if err := run(*dir, *seeds); err != nil {
		fmt.Fprintln(os.Stderr, "packing:", err)
		os.Exit(1)
	}
}

func run(dir string, seeds int) error {
	machines, pods, err := readTrace(dir)
	if err != nil {
		return err
	}
	kinds := typicalOf(pods)
	fmt.Printf("openb: %d nodes, %d pods, %d kinds of pods with GPUs, %d random orders\n\n", len(machines), len(pods), len(kinds), seeds)
	fmt.Println("GPU sharing as in the paper        given at 100 % asked   at 130 % asked   published at 100 %")
	for _, row := range []struct {
		name, published string
		policy          policy
	}{
		{"best fit", "92.86", bestFit},
		{"FGD, ties to the fullest node", "95.23", measured(kinds, false)},
		{"Muster's cost", "", measured(kinds, true)},
	} {
		at100, at130 := shares(machines, pods, seeds, row.policy)
		fmt.Printf("%-34s %-22s %-16s %s\n", row.name, at100, at130, row.published)
	}
	fmt.Println("\nwhole GPUs, placed by placement.Fleet (a share asks for a whole one)")
	for _, row := range []struct {
		name   string
		expect bool
	}{{"fullest node first", false}, {"Muster's packing", true}} {
		at100, at130, err := fleets(machines, pods, seeds, row.expect)
		if err != nil {
			return err
		}
		fmt.Printf("%-34s %-22s %s\n", row.name, at100, at130)
	}
	return nil
}

// arrivals returns all pods and copies of random ones until they ask for part of
// the capacity, in random order.
func arrivals(pods []pod, demand int64, seed int, ask func(pod) int64) []pod {
	r := rand.New(rand.NewPCG(uint64(seed), 2023))
	all, sum := append([]pod(nil), pods...), int64(0)
	for _, p := range all {
		sum += ask(p)
	}
	for sum < demand {
		p := pods[r.IntN(len(pods))]
		all, sum = append(all, p), sum+ask(p)
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// shares places pods that share GPUs.
func shares(machines []machine, pods []pod, seeds int, rank policy) (at100, at130 figure) {
	for seed := range seeds {
		c := newCluster(machines)
		asked, seen := int64(0), false
		for _, p := range arrivals(pods, c.capacity*130/100, seed, pod.demand) {
			c.place(p, rank)
			if asked += p.demand(); !seen && asked >= c.capacity {
				seen = true
				at100 = append(at100, 100*float64(c.placed)/float64(c.capacity))
			}
		}
		at130 = append(at130, 100*float64(c.placed)/float64(c.capacity))
	}
	return at100, at130
}

// figure is a value for each seed.
type figure []float64

func (f figure) String() string {
	mean, spread := 0.0, 0.0
	for _, v := range f {
		mean += v / float64(len(f))
	}
	for _, v := range f {
		spread += (v - mean) * (v - mean) / float64(len(f))
	}
	return fmt.Sprintf("%.2f +- %.2f %%", mean, math.Sqrt(spread))
}
