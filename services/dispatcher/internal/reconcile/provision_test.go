package reconcile

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

const (
	oneRequest  = "raycluster-r-0f0f0-nodes-1"
	oneTemplate = "ppt-raycluster-r-0f0f0-nodes-1-workers"
	clusterJSON = `{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"r","annotations":{"provreq.kueue.x-k8s.io/ValidUntilSeconds":"60","other/key":"x"}},"spec":{
		"headGroupSpec":{"template":{"spec":{"containers":[{"name":"head"}]}}},
		"workerGroupSpecs":[{"groupName":"workers","template":{"spec":{"containers":[{"name":"worker","resources":{"limits":{"cpu":"2","nvidia.com/gpu":1},"requests":{"cpu":"1"}}}]}}}]}}`
)

// provisionCommand asks for nodes for 3 workers.
func provisionCommand(order int64) *event.GangCommand {
	return &event.GangCommand{
		Workload: "w", Cluster: "c", Attempt: 1, Epoch: 1, Order: order, State: event.Provision, Kind: "RayCluster", Namespace: "n", Name: "r",
		Manifest: json.RawMessage(clusterJSON),
		Provision: &event.ProvisionCommand{
			Name: oneRequest, Number: 1, Class: "queued-provisioning.gke.io", Pods: []workload.PodCount{{PodSet: "workers", Pods: 3}},
		},
	}
}

func requestID(name string) bundle.Identity {
	return bundle.Identity{APIVersion: requestVersion, Kind: requestKind, Namespace: "n", Name: name}
}

// setCondition answers a request.
func (p *played) setCondition(name, condition, message string) {
	p.cluster.items[requestID(name)].Content = map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Accepted", "status": "True"},
		map[string]any{"type": condition, "status": "True", "message": message},
	}}}
}

func (p *played) wantRequest(t *testing.T, state, message string) {
	t.Helper()
	if got := p.status.Provision; got == nil || got.State != state || !strings.Contains(got.Message, message) {
		t.Errorf("the status has the request %+v, want %s with %q", got, state, message)
	}
}

// What is asked for is complete: requests that the manifest leaves to the limits, and
// parameters of the object.
func TestARequestHasRequestsAndParameters(t *testing.T) {
	t.Parallel()
	p := play(t)
	command := provisionCommand(1)
	command.Provision.Parameters = map[string]string{"ValidUntilSeconds": "0", "maxRunDurationSeconds": "10"}
	p.Command(command)
	if err := p.see(t, 1); err != nil {
		t.Fatal(err)
	}
	spec := p.cluster.items[requestID(oneRequest)].Content["spec"].(map[string]any)
	if got := fmt.Sprint(spec["parameters"]); got != "map[ValidUntilSeconds:60 maxRunDurationSeconds:10]" {
		t.Errorf("the parameters are %s", got)
	}
	template := p.cluster.items[bundle.Identity{APIVersion: podTemplatesAPI, Kind: podTemplateKind, Namespace: "n", Name: oneTemplate}].Content
	pod := template["template"].(map[string]any)["spec"].(map[string]any)
	if pod["schedulingGates"] != nil {
		t.Errorf("the template has the gates %v", pod["schedulingGates"])
	}
	containers := pod["containers"].([]any)
	if got := fmt.Sprint(containers[0].(map[string]any)["resources"].(map[string]any)["requests"]); got != "map[cpu:1 nvidia.com/gpu:1]" {
		t.Errorf("a worker requests %s", got)
	}
}

// The submitter of a job gets its node from the command, which has none yet.
func TestAJobAsksBeforeItsSubmitterHasAPlace(t *testing.T) {
	t.Parallel()
	p := play(t)
	command := provisionCommand(1)
	command.Kind = workload.KindRayJob
	command.Manifest = json.RawMessage(`{"apiVersion":"ray.io/v1","kind":"RayJob","metadata":{"name":"r"},"spec":{"entrypoint":"e",
		"rayClusterSpec":` + string(must(json.Marshal(must(ray.Tree(json.RawMessage(clusterJSON)))["spec"]))) + `}}`)
	p.Command(command)
	if err := p.see(t, 1); err != nil {
		t.Fatal(err)
	}
	if want := []string{oneTemplate, oneRequest}; !slices.Equal(p.cluster.created, want) {
		t.Errorf("created: %v, want %v; the status is %+v", p.cluster.created, want, p.status.Provision)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func TestARequestIsCreatedOnceAndFollowed(t *testing.T) {
	t.Parallel()
	p := play(t)
	p.Command(provisionCommand(1))
	if err := p.see(t, 1); err != nil {
		t.Fatal(err)
	}
	if want := []string{oneTemplate, oneRequest}; !slices.Equal(p.cluster.created, want) {
		t.Fatalf("created: %v, want %v", p.cluster.created, want)
	}
	p.wantRequest(t, event.RequestPending, "")
	for _, state := range []string{event.RequestAccepted, event.RequestProvisioned, event.RequestExpired, event.RequestRevoked, event.RequestFailed} {
		p.setCondition(oneRequest, state, "so "+state)
		p.Look("w")
		if err := p.see(t, 1); err != nil {
			t.Fatal(err)
		}
		p.wantRequest(t, state, "")
	}
	if len(p.cluster.created) != 2 {
		t.Errorf("created: %v, want one request", p.cluster.created)
	}
}

// Wherever the dispatcher dies, the next one ends with one request.
func TestTheNextDispatcherGoesOnWithARequest(t *testing.T) {
	t.Parallel()
	for die := 1; die <= 6; die++ {
		c, writes := newCluster(), 0
		c.write = func() {
			if writes++; writes == die {
				panic("the process dies")
			}
		}
		p := playOn(t, c)
		p.Command(provisionCommand(1))
		func() {
			defer func() { _ = recover() }()
			_ = p.see(t, 1)
		}()
		c.write = nil
		next := playOn(t, c)
		next.Command(provisionCommand(1))
		if err := next.see(t, 1); err != nil {
			t.Fatal(err)
		}
		slices.Sort(c.created)
		if want := []string{oneTemplate, oneRequest}; !slices.Equal(c.created, want) {
			t.Errorf("after a death at write %d there is created: %v, want %v", die, c.created, want)
		}
	}
}

func TestARequestThatIsTakenAwayOrTakenIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set            func(*played)
		state, message string
	}{
		"deleted by another party": {func(p *played) { delete(p.cluster.items, requestID(oneRequest)) }, event.RequestGone, "not by Muster"},
		"it is being deleted":      {func(p *played) { p.cluster.items[requestID(oneRequest)].Deleting = true }, event.RequestGone, "not by Muster"},
		"of another party":         {func(p *played) { p.cluster.items[requestID(oneRequest)].Workload = "" }, event.RequestFailed, "does not belong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			p.Command(provisionCommand(1))
			_ = p.see(t, 1)
			c.set(p)
			p.Look("w")
			if err := p.see(t, 1); err != nil {
				t.Fatal(err)
			}
			p.wantRequest(t, c.state, c.message)
			if len(p.cluster.created) != 2 || len(p.cluster.deleted) > 0 {
				t.Errorf("created %v, deleted %v; want nothing more", p.cluster.created, p.cluster.deleted)
			}
		})
	}
}

// What an administrator can mend is no answer of an autoscaler: the request is pending with
// what keeps it away, however often that is tried, and is created when it is mended.
func TestARequestWaitsForWhatAnAdministratorCanMend(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		object string
		answer error
	}{
		"no definition":   {oneRequest, &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "autoscaling.x-k8s.io", Kind: requestKind}}},
		"no right":        {oneRequest, apierrors.NewForbidden(schema.GroupResource{Resource: "provisioningrequests"}, oneRequest, errors.New("no role"))},
		"no templates":    {oneTemplate, apierrors.NewForbidden(schema.GroupResource{Resource: "podtemplates"}, oneTemplate, errors.New("no role"))},
		"its own refusal": {oneRequest, apierrors.NewBadRequest("spec.parameters is too long")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			p.cluster.answers["create "+c.object] = c.answer
			p.Command(provisionCommand(1))
			for range 2 * earlyRetries {
				_ = p.see(t, 1)
			}
			if name == "its own refusal" {
				p.wantRequest(t, event.RequestFailed, c.answer.Error())
				return
			}
			p.wantRequest(t, event.RequestPending, c.answer.Error())
			delete(p.cluster.answers, "create "+c.object)
			if err := p.see(t, 1); err != nil {
				t.Fatal(err)
			}
			if got := p.status.Provision; !got.Created || got.Message != "" {
				t.Errorf("after it was mended the status has the request %+v, want it created", got)
			}
		})
	}
}

func TestARequestGoesWithItsCommand(t *testing.T) {
	t.Parallel()
	for _, state := range []string{event.Forgotten, event.Absent, event.Ended} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			p.Command(provisionCommand(1))
			_ = p.see(t, 1)
			over := provisionCommand(2)
			over.State = state
			p.Command(over)
			if err := p.see(t, 1); err != nil {
				t.Fatal(err)
			}
			slices.Sort(p.cluster.deleted)
			if want := []string{oneTemplate, oneRequest}; !slices.Equal(p.cluster.deleted, want) {
				t.Errorf("deleted: %v, want %v", p.cluster.deleted, want)
			}
		})
	}
}

// What keeps a request from being deleted keeps no gang running, and the request goes later.
func TestARequestThatCannotBeDeletedKeepsNoGang(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "provisioningrequests"}, "", errors.New("no role"))
	for _, call := range []string{"list " + requestKind, "delete " + oneRequest} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			p.Command(provisionCommand(1))
			_ = p.see(t, 1)
			p.cluster.objects["r"], p.cluster.answers[call] = rayOf("w", 1), forbidden
			over := provisionCommand(2)
			over.State = event.Absent
			p.Command(over)
			if err := p.see(t, 2); err == nil {
				t.Error("the looks ended without an error")
			}
			if !slices.Contains(p.cluster.deleted, "r") || !p.status.Released {
				t.Errorf("deleted are %v, the status is %+v; want r deleted and its places released", p.cluster.deleted, p.status)
			}
			delete(p.cluster.answers, call)
			if err := p.see(t, 1); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(p.cluster.deleted, oneRequest) {
				t.Errorf("deleted are %v, want the request, too", p.cluster.deleted)
			}
		})
	}
}

// A name that is too long is cut to one that an API server takes, wherever the cut is.
func TestALongTemplateNameIsValid(t *testing.T) {
	t.Parallel()
	for length := 230; length <= 253; length++ {
		name := templateName(strings.Repeat("a", length)+".b-"+strings.Repeat("c", 20), "workers")
		if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
			t.Errorf("the name %q of a PodTemplate is refused: %v", name, faults)
		}
	}
}

func TestTheNextRequestReplacesTheOneBefore(t *testing.T) {
	t.Parallel()
	p := play(t)
	p.Command(provisionCommand(1))
	_ = p.see(t, 1)
	next := provisionCommand(2)
	next.Provision.Name, next.Provision.Number = "raycluster-r-0f0f0-nodes-2", 2
	p.Command(next)
	if err := p.see(t, 1); err != nil {
		t.Fatal(err)
	}
	slices.Sort(p.cluster.deleted)
	if want := []string{oneTemplate, oneRequest}; !slices.Equal(p.cluster.deleted, want) {
		t.Errorf("deleted: %v, want %v", p.cluster.deleted, want)
	}
	if p.cluster.items[requestID("raycluster-r-0f0f0-nodes-2")] == nil {
		t.Error("the next request is not there")
	}
}

// The pods of an admitted gang name the request whose nodes they use.
func TestPodsNameTheirRequest(t *testing.T) {
	t.Parallel()
	command := provisionCommand(1)
	command.State = event.Present
	tools := play(t).tools
	pass := tools.newPass(&tracked{id: "w"}, command)
	if err := pass.readObjects(); err != nil {
		t.Fatal(err)
	}
	templates, err := pass.stampedTemplates()
	if err != nil {
		t.Fatal(err)
	}
	annotations := func(podSet string) map[string]any {
		metadata, _ := templates[podSet]["metadata"].(map[string]any)
		found, _ := metadata["annotations"].(map[string]any)
		return found
	}
	if got := annotations("workers"); got[consumeKey] != oneRequest || got[classKey] != "queued-provisioning.gke.io" {
		t.Errorf("workers have the annotations %v", got)
	}
	if got := annotations("headgroup"); got[consumeKey] != nil {
		t.Errorf("the head, which has a place, has the annotations %v", got)
	}
}

// A request that is watched is looked at when it changes, and seldom besides. Without a watch
// it is polled.
func TestAWatchedRequestIsNotPolled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		watched bool
		want    time.Duration
	}{"watched": {true, requestMissed}, "not watched": {false, requestLookAgain}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			p.cluster.watchesRequests = test.watched
			p.Command(provisionCommand(1))
			_ = p.see(t, 1)
			again, err := p.look(t.Context(), "w")
			if err != nil || again != test.want {
				t.Errorf("the request is looked at again after %s (%v), want %s", again, err, test.want)
			}
		})
	}
}

// The status has the labels of the nodes of a request that is provisioned, as far as the
// configuration names them and they are labels.
func TestTheStatusHasTheLabelsOfTheNodes(t *testing.T) {
	t.Parallel()
	p := play(t)
	command := provisionCommand(1)
	command.Provision.NodeLabels = map[string]string{"a": "ResizeRequestName", "b": "missing", "c": "no label"}
	p.Command(command)
	_ = p.see(t, 1)
	details := map[string]any{"ResizeRequestName": "r1", "no label": "a b", "other": "x"}
	for _, step := range []struct{ condition, want string }{{"Pending", "map[]"}, {event.RequestProvisioned, "map[a:r1]"}} {
		p.setCondition(oneRequest, step.condition, "")
		p.cluster.items[requestID(oneRequest)].Content["status"].(map[string]any)["provisioningClassDetails"] = details
		if err := p.see(t, 1); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(p.status.Provision.NodeSelector); got != step.want {
			t.Errorf("%s: the status has the labels %s, want %s", step.condition, got, step.want)
		}
	}
}
