package app_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
)

// manifests are the objects of a YAML file as a tool sends them.
func manifests(t *testing.T, file string) []json.RawMessage {
	t.Helper()
	objects, err := kueue.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	var all []json.RawMessage
	for _, o := range objects {
		all = append(all, o.Manifest)
	}
	return all
}

func (w *world) configure(r query.ConfigureRequest) query.ConfigureAnswer {
	w.t.Helper()
	answer, err := w.queries.Configure(w.ctx, "", r)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer
}

func (w *world) apply(file string) query.ConfigureAnswer {
	w.t.Helper()
	return w.configure(query.ConfigureRequest{Apply: manifests(w.t, file)})
}

// refused applies or deletes what must be refused, and checks the error.
func (w *world) refused(r query.ConfigureRequest, words ...string) {
	w.t.Helper()
	answer, err := w.queries.Configure(w.ctx, "", r)
	if err == nil {
		w.t.Fatalf("it was not refused: %+v", answer)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.t.Errorf("it says %q, want it to say %q", err, word)
		}
	}
}

func outcomes(answer query.ConfigureAnswer) []string {
	var all []string
	for _, o := range answer.Objects {
		all = append(all, o.Kind+" "+o.Outcome)
	}
	return all
}

const oneQueue = `apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {namespace: team-a, name: user-queue}
spec: {clusterQueue: cluster-queue}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: cluster-queue}
spec:
  namespaceSelector: {}
  quotaCheckStrategy: IgnoreUndeclared
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: default-flavor, resources: [{name: nvidia.com/gpu, nominalQuota: 1}]}]
  admissionChecks: [rayjob-gpu]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: default-flavor}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: AdmissionCheck
metadata: {name: rayjob-gpu}
spec:
  controllerName: kueue.x-k8s.io/provisioning-request
  parameters: {apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: rayjob-gpu-config}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ProvisioningRequestConfig
metadata: {name: rayjob-gpu-config}
spec: {provisioningClassName: queued-provisioning.gke.io, managedResources: [nvidia.com/gpu]}
`

// What is applied at run time governs at once, in the order of need whatever that
// of the file is, outlives its queue-manager, and is followed by a standby.
func TestAppliedObjectsCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("one", 4)
	early := w.submit(gangOf("early", "user-queue", 1))
	if got := w.rejected(early).Reason; !strings.Contains(got.Message, `queue "user-queue" does not exist`) {
		t.Errorf("rejected for %+v", got)
	}

	answer := w.apply(oneQueue)
	if got := outcomes(answer); !slices.Equal(got, []string{"LocalQueue created", "ClusterQueue created", "ResourceFlavor created", "AdmissionCheck created", "ProvisioningRequestConfig created"}) {
		t.Errorf("applied: %v", got)
	}
	if notes := answer.Objects[3].Notes; len(notes) > 0 {
		t.Errorf("notes are %q", notes)
	}
	if again := w.apply(oneQueue); again.Version != answer.Version || slices.ContainsFunc(outcomes(again), func(o string) bool { return !strings.HasSuffix(o, " unchanged") }) {
		t.Errorf("again: version %d after %d, %v", again.Version, answer.Version, outcomes(again))
	}

	first := w.submit(gangOf("first", "user-queue", 1))
	w.command(first, event.Present, 1)
	second := w.submit(gangOf("second", "user-queue", 2))
	w.waits(second, workload.ReasonNeverFits)
	if q := w.queue("user-queue"); q.ClusterQueue != "cluster-queue" || q.Waiting != 1 || !slices.Equal(q.Namespaces, []string{"team-a"}) {
		t.Errorf("the queue is %+v", q)
	}

	// A standby follows, and leads when the leader is gone; it knows the quota and
	// whose it is.
	leader := w.stopOnce
	w.start() // a standby
	more := w.configure(query.ConfigureRequest{Apply: manifests(t, strings.Replace(oneQueue, "nominalQuota: 1", "nominalQuota: 2", 1)), DryRun: true})
	if got := outcomes(more); !slices.Contains(got, "ClusterQueue configured") || more.Version >= answer.Version+1000 {
		t.Errorf("rehearsed: %v", got)
	}
	if q := w.queue("user-queue"); q.Quota[0].Nominal != 1 {
		t.Errorf("a rehearsal has changed the quota: %+v", q.Quota)
	}
	w.apply(strings.Replace(oneQueue, "nominalQuota: 1", "nominalQuota: 2", 1))
	leader()
	third := w.submit(gangOf("third", "user-queue", 1))
	w.command(third, event.Present, 1) // within the quota that was raised while it stood by
	if _, err := w.queries.Applied(w.ctx); err != nil {
		t.Error(err)
	}

	// More quota is all that the second waits for: the new leader takes changes,
	// too, and decides again.
	w.apply(strings.Replace(oneQueue, "nominalQuota: 1", "nominalQuota: 4", 1))
	w.command(second, event.Present, 1)
	stored, err := w.queries.Applied(w.ctx)
	if err != nil || len(stored.Objects) != 5 {
		t.Errorf("stored are %+v, %v", stored, err)
	}
}

// What cannot stand with the rest changes nothing at all, and each refusal says
// what is wrong, where, and what to do.
func TestAppliedObjectsAreRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "listed", Namespaces: []string{"team-a"}})
	w.node("one", 4)
	w.apply(oneQueue)
	lives := w.submit(gangOf("lives", "user-queue", 1))
	w.command(lives, event.Present, 1)
	local := func(namespace, name, to string) query.ConfigureRequest {
		return query.ConfigureRequest{Apply: manifests(t, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {namespace: "+namespace+", name: "+name+"}\nspec: {clusterQueue: "+to+"}\n")}
	}
	flavor := "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {name: other}\n---\n"
	for name, c := range map[string]struct {
		request query.ConfigureRequest
		words   []string
	}{
		"a queue that leads nowhere":           {local("team-a", "new", "none"), []string{`LocalQueue "new" of namespace "team-a": spec.clusterQueue: "none": there is no clusterQueue of this name; there are cluster-queue`, "nothing was changed"}},
		"a namespace that the file leaves out": {local("team-b", "listed", "cluster-queue"), []string{`localQueue "listed" of namespace "team-b"`, "add the namespace there, or choose another name"}},
		"a name that is no queue's":            {local("team-b", "a.b", "cluster-queue"), []string{`localQueue "a.b"`, "want a name of at most 63"}},
		"a flavor that is used":                {query.ConfigureRequest{Delete: []kueue.Key{{Kind: "ResourceFlavor", Name: "default-flavor"}}}, []string{`ClusterQueue "cluster-queue": spec.resourceGroups[0].flavors[0].name: "default-flavor": there is no resourceFlavor of this name`}},
		"a queue with workloads":               {query.ConfigureRequest{Delete: []kueue.Key{{Kind: "LocalQueue", Namespace: "team-a", Name: "user-queue"}}}, []string{`queue "user-queue" of namespace "team-a" has 1 workloads that have not ended`, "let them end first"}},
		"one fault among what is right": {query.ConfigureRequest{Apply: manifests(t, flavor+strings.ReplaceAll(oneQueue, "nominalQuota: 1", "nominalQuota: 1, borrowingLimit: 1"))},
			[]string{`ClusterQueue "cluster-queue": spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit: needs a cohort: set cohortName`}},
		"the same twice":   {query.ConfigureRequest{Apply: append(manifests(t, flavor), manifests(t, flavor)...)}, []string{"object 2: resourceflavor.kueue.x-k8s.io/other is a duplicate"}},
		"an unknown field": {query.ConfigureRequest{Apply: []json.RawMessage{[]byte(`{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"ClusterQueue","metadata":{"name":"q"},"spec":{"colour":"red"}}`)}}, []string{`object 1: ClusterQueue "q": spec.colour: there is no such field; want one of name`}},
		"an unknown top":   {query.ConfigureRequest{Apply: []json.RawMessage{[]byte(`{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"ClusterQueue","metadata":{"name":"q"},"sepc":{}}`)}}, []string{`ClusterQueue "q": sepc: there is no such field; want one of apiVersion`}},
		"no object":        {query.ConfigureRequest{Apply: []json.RawMessage{[]byte(`7`)}}, []string{"object 1"}},
		"elsewhere with workloads": {query.ConfigureRequest{Apply: manifests(t, strings.ReplaceAll(oneQueue, "cluster-queue", "another"))},
			[]string{`queue "user-queue" of namespace "team-a" would lead to clusterQueue "another" instead of "cluster-queue", and has 1 workloads`}},
	} {
		t.Run(name, func(t *testing.T) {
			before := w.t
			w.t = t
			defer func() { w.t = before }()
			w.refused(c.request, c.words...)
		})
	}
	stored, err := w.queries.Applied(w.ctx)
	if err != nil || len(stored.Objects) != 5 {
		t.Errorf("stored are %+v, %v", stored, err)
	}

	// The objects of another origin stay; and when no workload is left in the queue
	// it can go.
	if _, err := w.queries.Configure(w.ctx, "east", query.ConfigureRequest{Apply: manifests(t, oneQueue)}); err == nil || !strings.Contains(err.Error(), "belongs to the objects applied with `muster apply` already") {
		t.Errorf("taken over: %v", err)
	}
	if _, err := w.queries.Configure(w.ctx, "east", query.ConfigureRequest{Apply: manifests(t, flavor)}); err != nil {
		t.Error(err)
	}
	w.refused(query.ConfigureRequest{Delete: []kueue.Key{{Kind: "ResourceFlavor", Name: "other"}}}, `belongs to cluster "east"; delete it there`)
	w.cancel("user-queue", lives)
	w.command(lives, event.Absent, 1)
	w.status(event.GangStatus{Workload: lives, Attempt: 1, Created: true, Gone: true, Released: true})
	w.phase(lives, workload.Cancelled)
	gone := w.configure(query.ConfigureRequest{Delete: []kueue.Key{
		{Kind: "LocalQueue", Namespace: "team-a", Name: "user-queue"}, {Kind: "ClusterQueue", Name: "cluster-queue"}, {Kind: "Topology", Name: "none"},
	}})
	if got := outcomes(gone); !slices.Equal(got, []string{"LocalQueue deleted", "ClusterQueue deleted", "Topology not found"}) {
		t.Errorf("deleted: %v", got)
	}
}

// The queues file takes precedence over applied objects, also when it comes later.
func TestTheQueuesFileGoesBeforeWhatIsApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(strings.Replace(oneQueue, "admissionChecks: [rayjob-gpu]", "admissionChecks: []", 1)) // it waits, and asks for no nodes
	w.stop()
	w.config.Policy.Flavors = []quota.Flavor{{Name: "default-flavor", NodeLabels: map[string]string{"pool": "a"}}}
	w.start()
	w.refused(query.ConfigureRequest{Apply: manifests(t, "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {name: default-flavor}\nspec: {nodeLabels: {pool: b}}\n")},
		"resourceflavor.kueue.x-k8s.io/default-flavor: the queues file of queue-manager has it and takes precedence", "change it there")
	w.node("one", 4) // has no label "pool"
	gang := w.submit(gangOf("gang", "user-queue", 1))
	w.waits(gang, workload.ReasonNeverFits)
	// Without it in the file the applied one counts again.
	w.stop()
	w.config.Policy.Flavors = nil
	w.start()
	w.command(gang, event.Present, 1)
}
