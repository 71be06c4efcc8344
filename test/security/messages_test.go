package security

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// spreads is a RayCluster of worker groups that are each to be spread over
// the nodes, the more of them the harder to place.
func spreads(name string, groups int) string {
	var manifest map[string]any
	if err := json.Unmarshal([]byte(stack.RayCluster(name, 2, 0)), &manifest); err != nil {
		panic(err)
	}
	spec := manifest["spec"].(map[string]any)
	one, err := json.Marshal(spec["workerGroupSpecs"].([]any)[0])
	if err != nil {
		panic(err)
	}
	var all []any
	for i := range groups {
		var group map[string]any
		if err := json.Unmarshal(one, &group); err != nil {
			panic(err)
		}
		group["groupName"] = fmt.Sprintf("group-%d", i)
		label := map[string]any{"spread": fmt.Sprint(i)}
		template := group["template"].(map[string]any)
		meta, is := template["metadata"].(map[string]any)
		if !is {
			meta = map[string]any{}
			template["metadata"] = meta
		}
		meta["labels"] = label
		template["spec"].(map[string]any)["topologySpreadConstraints"] = []any{map[string]any{
			"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": map[string]any{"matchLabels": label},
		}}
		all = append(all, group)
	}
	spec["workerGroupSpecs"] = all
	encoded, err := json.Marshal(manifest)
	if err != nil {
		panic(err)
	}
	return string(encoded)
}

// Whatever one message says, it is answered, and the next one's gang runs: amounts
// that take for ever to add, names that no index takes, control characters, what is
// no manifest, and gangs that are hard to place.
func TestOneMessageStopsNoService(t *testing.T) {
	t.Parallel()
	w := newTenants(t, workload.Rules{})
	if err := w.AddNodes(t.Context(), "cpu", 3, "cpu=16", "memory=64Gi"); err != nil {
		t.Fatal(err)
	}
	job := func(name, memory string) string {
		return fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: %s}\nspec: {template: {spec: {restartPolicy: Never, containers: ["+
			"{name: a, image: i, resources: {requests: {memory: %q}}}, {name: b, image: i, resources: {requests: {memory: \"1\"}}}]}}}", name, memory)
	}
	long := strings.Repeat("a", 6000)
	for name, manifest := range map[string]string{
		"an amount of many digits":         stack.AppWrapper(w.Namespace, "digits", job("digits", "1e99999999")),
		"a negative amount":                stack.AppWrapper(w.Namespace, "negative", job("negative", "-1")),
		"a name of 6,000 letters":          strings.Replace(stack.RayCluster("short", 1, 0), `"short"`, `"`+long+`"`, 1),
		"a kind of 4,000 letters":          strings.Replace(stack.RayCluster("kind", 1, 0), `"RayCluster"`, `"`+long[:4000]+`"`, 1),
		"a label of 6,000 letters":         stack.Labelled(stack.RayCluster("label", 1, 0), "a", long),
		"a name that moves the cursor":     strings.Replace(stack.RayCluster("cursor", 1, 0), `"cursor"`, `"a\u001b[2J"`, 1),
		"a name with NUL":                  strings.Replace(stack.RayCluster("nul", 1, 0), `"nul"`, `"a\u0000"`, 1),
		"no manifest":                      "[[[[",
		"a kind that no tenant may create": stack.AppWrapper(w.Namespace, "lease", "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: mine}"),
		"aliases that become a thousand":   "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\nkind: RayCluster\n",
	} {
		if why := w.refused(w.submit(manifest)); why == "" {
			t.Errorf("%s: refused without a reason", name)
		} else if len(why) > 4000 || strings.ContainsAny(why, "\x00\x1b") {
			t.Errorf("%s: the reason repeats it: %.200q", name, why)
		}
	}
	w.submit(spreads("hard", 8))
	w.reaches(w.submit(stack.RayCluster("honest", 1, 0)), workload.Running)
}

// Two users of one queue are two, though they give the same id, the same source and
// the same message id in the same moment.
func TestNoSubmitterTakesAnothersID(t *testing.T) {
	t.Parallel()
	w := newTenants(t, workload.Rules{})
	if err := w.AddNodes(t.Context(), "cpu", 1, "cpu=16", "memory=64Gi"); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(w.Bus.Conn())
	if err != nil {
		t.Fatal(err)
	}
	ids := map[workload.ID]bool{}
	for _, user := range []string{"tenant-a", "tenant-b"} {
		message := nats.NewMsg(event.SubmitSubjectAs("default", user))
		message.Data = []byte(stack.RayCluster(user, 0, 0))
		for key, value := range map[string]string{"ce-id": "1", "ce-source": "laptop", "ce-type": event.SubmitType, "ce-specversion": "1.0"} {
			message.Header.Set(key, value)
		}
		if ack, err := js.PublishMsg(t.Context(), message, jetstream.WithMsgID("nightly")); err != nil || ack.Duplicate {
			t.Fatalf("%s: %+v, %v", user, ack, err)
		}
		ids[event.SubmissionID(user, "laptop", "1")] = true
	}
	if len(ids) != 2 {
		t.Errorf("the two have %d ids", len(ids))
	}
	for id := range ids {
		w.reaches(id, workload.Running)
	}
	forged := event.Envelope{SpecVersion: event.SpecVersion, ID: "1", Source: "http/alice", Type: event.SubmitType, DataContentType: "application/json", Data: json.RawMessage(stack.RayCluster("forged", 0, 0))}
	if err := w.Bus.Publish(t.Context(), event.SubmitSubject("default"), forged); err != nil {
		t.Fatal(err)
	}
	if why := w.refused(event.WorkloadID("http/alice", "1")); !strings.Contains(why, "http/") {
		t.Errorf("a message that names another interface's source is refused because %q", why)
	}
}
