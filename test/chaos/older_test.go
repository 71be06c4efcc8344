package chaos

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"muster.dev/muster/test/suite"
	"muster.dev/muster/test/suite/local"
)

const (
	// olderGangs is the load of each restore; one restore of olderPurged loses what
	// NATS keeps of submissions, too.
	olderGangs, olderPurged = 16, 4
)

// TestPostgresIsRestoredToAnOlderState restores a physical backup under load: once, or with
// -runs times, with -gangs each.
func TestPostgresIsRestoredToAnOlderState(t *testing.T) {
	cluster := startCluster(t, "older", "p3")
	plan := suite.OlderPlan{Runs: max(*runs, 1), Gangs: *gangs, Seed: *seed, Purged: olderPurged}
	if plan.Gangs == 0 {
		plan.Gangs = olderGangs
	}
	if plan.Seed == 0 {
		plan.Seed = rand.Uint64()>>32 + 1
	}
	began := time.Now()
	restores := suite.RestoreOlderState(t, &local.Provider{Binaries: binaries, Cluster: cluster}, plan)
	if len(restores) < plan.Runs {
		t.Errorf("%d restores, want %d", len(restores), plan.Runs)
	}
	fmt.Printf("seed %d: %s in %s\n", plan.Seed, summary(restores), time.Since(began).Round(time.Second))
}

// summary is what a page says of restores.
func summary(restores []suite.Restored) string {
	var gangs, lost, named, unadmitted int
	var recovered, cleared []time.Duration
	for _, r := range restores {
		gangs, lost, named, unadmitted = gangs+r.Gangs, lost+r.Lost, named+r.Named, unadmitted+r.Unadmitted
		recovered, cleared = append(recovered, r.Recovered), append(cleared, r.Cleared)
	}
	return fmt.Sprintf("%d restores, %d gangs, %d lost with the database, %d of them named, %d pods or RayClusters unadmitted after 60 s; "+
		"recovery %s; last unadmitted gone %s", len(restores), gangs, lost, named, unadmitted, recovery(recovered), recovery(cleared))
}
