package app_test

import (
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/query"
)

// TestApplyJudgesQueues: the answer to a change, also to a dry run, says of each queue why it
// would admit nothing, and what may be a misspelt cohort.
func TestApplyJudgesQueues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	of := func(file, kind string) query.Configured {
		t.Helper()
		answer := w.configure(query.ConfigureRequest{Apply: manifests(t, file), DryRun: true})
		i := slices.IndexFunc(answer.Objects, func(o query.Configured) bool { return o.Kind == kind })
		if i < 0 {
			t.Fatalf("no %s in %+v", kind, answer)
		}
		return answer.Objects[i]
	}
	for name, c := range map[string]struct{ file, cluster, local, note string }{
		"active":          {oneQueue, "", "", ""},
		"a selector":      {strings.Replace(oneQueue, "namespaceSelector: {}", "namespaceSelector: {matchLabels: {team: a}}", 1), "", "", ""},
		"another check":   {strings.Replace(oneQueue, "kueue.x-k8s.io/provisioning-request", "example.com/budget", 1), "", "", ""}, // asked by message
		"a stopped queue": {strings.Replace(oneQueue, "namespaceSelector: {}", "stopPolicy: Hold", 1), `clusterQueue "cluster-queue" is held (stopPolicy Hold)`, "stopPolicy Hold", ""},
		"a cohort":        {strings.Replace(oneQueue, "namespaceSelector: {}", "cohort: reserch", 1), "", "", `clusterQueue "cluster-queue": cohortName "reserch": no cohort of that name is defined`},
		"no such check":   {strings.Replace(oneQueue, "admissionChecks: [rayjob-gpu]", "admissionChecks: [nope]", 1), `AdmissionCheck "nope" does not exist`, `AdmissionCheck "nope" does not exist`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, local := of(c.file, "ClusterQueue"), of(c.file, "LocalQueue")
			if (cluster.Held != "") != (c.cluster != "") || !strings.Contains(cluster.Held, c.cluster) {
				t.Errorf("the ClusterQueue is held because %q, want %q", cluster.Held, c.cluster)
			}
			if (local.Held != "") != (c.local != "") || !strings.Contains(local.Held, c.local) {
				t.Errorf("the LocalQueue is held because %q, want %q", local.Held, c.local)
			}
			if notes := strings.Join(cluster.Notes, "\n"); (notes != "") != (c.note != "") || !strings.Contains(notes, c.note) {
				t.Errorf("notes are %q, want %q", notes, c.note)
			}
		})
	}
	child := of("apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: research}\nspec: {parentName: compny}\n", "Cohort")
	if len(child.Notes) != 1 || !strings.Contains(child.Notes[0], `cohort "research": parentName "compny": no cohort of that name is defined`) {
		t.Errorf("notes of a Cohort are %q", child.Notes)
	}
}

// TestInactiveQueuesAreListed also where no queue leads to them.
func TestInactiveQueuesAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: alone}\nspec: {admissionChecks: [nope]}\n")
	answer, err := w.queries.Queues(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if why := answer.Inactive["alone"]; len(answer.Inactive) != 1 || !strings.Contains(why, `AdmissionCheck "nope" does not exist`) {
		t.Errorf("inactive are %q", answer.Inactive)
	}
}
