// Package contract generates what others read about Muster's messages from the
// Go types that Muster itself uses, and holds what is in docs against it: JSON
// Schemas, an example of each event, and an AsyncAPI document. With -update it
// writes them.
package contract

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

var update = flag.Bool("update", false, "write what is generated into docs")

const docs = "../../docs"

// message is an event with where it goes.
type message struct {
	payload  event.Payload
	channel  string // with {parameters}
	from, to string
	what     string
}

// messages are all events, in the order of a workload's life.
func messages() []message {
	const queue, cluster, id, node = "{queue}", "{cluster}", "{workload}", "{node}"
	events, client := event.EventsSubject(queue, id), "any client"
	return []message{
		{&event.WorkloadSubmitted{}, event.WorkloadSubject(queue), "intake", "queue-manager", "an accepted submission, normalised to pod sets"},
		{&event.WorkloadCancel{}, event.WorkloadSubject(queue), client, "queue-manager", "end a workload"},
		{&event.WorkloadRelease{}, event.WorkloadSubject(queue), "operator", "queue-manager", "free a workload's places by force"},
		{&event.WorkloadMove{}, event.WorkloadSubject(queue), "operator, intake", "queue-manager", "have a workload that waits wait in another queue"},
		{&event.WorkloadHold{}, event.WorkloadSubject(queue), "operator, intake", "queue-manager", "keep a workload that waits from admission, or resume it"},
		{&event.WorkloadRequeue{}, event.WorkloadSubject(queue), "operator, intake", "queue-manager", "take an admitted workload down and queue it again"},
		{&event.WorkloadCheckpoint{}, event.WorkloadSubject(queue), "operator, intake", "queue-manager", "note that a workload has saved its work"},
		{&event.WorkloadPriority{}, event.WorkloadSubject(queue), "operator, intake", "queue-manager", "set the priority of a workload"},
		{&event.WorkloadRejected{}, events, "intake, queue-manager", client, "a submission was refused for good, and why"},
		{&event.WorkloadChanged{}, events, "queue-manager", client, "a workload entered a phase, or its reason changed"},
		{&event.RequestWaits{}, events, "queue-manager", client, "a request waits for the submission of its workload"},
		{&event.NodeObserved{}, event.NodeSubject(cluster, node), "capacity-watcher", "queue-manager", "the present state of a node"},
		{&event.NodeRemoved{}, event.NodeSubject(cluster, node), "capacity-watcher", "queue-manager", "a node is gone"},
		{&event.NamespaceObserved{}, event.NamespaceSubject(cluster, "{namespace}"), "capacity-watcher", "queue-manager", "the labels, default requests and LimitRanges of a namespace, or that it is gone"},
		{&event.CapacitySynced{}, event.SyncedSubject(cluster), "capacity-watcher", "queue-manager", "everything that the watcher observes"},
		{&event.GangObserved{}, event.GangSubject(cluster, id), "capacity-watcher", "queue-manager", "the observed pods of a workload"},
		{&event.GangCommand{}, event.DispatchSubject(cluster, id), "queue-manager", "dispatcher", "the wanted state of a workload"},
		{&event.GangStatus{}, event.StatusSubject(cluster, id), "dispatcher", "queue-manager", "the state of a workload's objects"},
		{&event.PermissionAsked{}, event.PermissionAskedSubject(cluster), "dispatcher", "queue-manager", "may the cluster keep what needs a permission"},
		{&event.PermissionGranted{}, event.PermissionSubject(cluster), "queue-manager", "dispatcher", "the cluster may, for so long after the question"},
		{&event.CheckWanted{}, event.CheckSubject("{check}", id), "queue-manager", "the controller of an AdmissionCheck", "what an AdmissionCheck is asked about a workload, and what became of its answer"},
		{&event.CheckAnswer{}, event.CheckedSubject("{check}"), "the controller of an AdmissionCheck", "queue-manager", "an answer about a workload"},
		{&event.DemandChanged{}, event.DemandSubject, "queue-manager", "who adds nodes", "what waiting gangs lack that more nodes would give them"},
		{&event.BudgetUsedUp{}, event.EventsSubject(queue, ""), "queue-manager", client, "a budget of a queue is used up"},
		{&event.ClusterChanged{}, event.ClusterEventsSubject(cluster), "queue-manager", "operators", "the state of a cluster has changed"},
		{&event.ReportWanted{}, event.AskSubject(cluster), "queue-manager", "capacity-watcher, dispatcher", "publish the known state once more"},
	}
}

func TestAllTypesAreDescribed(t *testing.T) {
	var described []string
	for _, m := range messages() {
		described = append(described, m.payload.EventType())
	}
	slices.Sort(described)
	if diff := cmp.Diff(event.Types(), described); diff != "" {
		t.Errorf("types (-in the registry +described):\n%s", diff)
	}
}

// reflector makes schemas that allow fields of later versions, with the types'
// own comments.
func reflector(t *testing.T) *jsonschema.Reflector {
	t.Helper()
	r := &jsonschema.Reflector{AllowAdditionalProperties: true, ExpandedStruct: true, Anonymous: true}
	r.Mapper = func(of reflect.Type) *jsonschema.Schema {
		switch of {
		case reflect.TypeFor[workload.Duration](), reflect.TypeFor[workload.Seconds]():
			return &jsonschema.Schema{Type: "string", Description: "A number and a unit, such as 90s or 10m."}
		case reflect.TypeFor[workload.Start]():
			var words []any
			for _, word := range workload.Starts() {
				words = append(words, word)
			}
			return &jsonschema.Schema{Type: "string", Enum: words}
		case reflect.TypeFor[workload.OnLoss]():
			var words []any
			for _, word := range workload.OnLosses() {
				words = append(words, word)
			}
			return &jsonschema.Schema{Type: "string", Enum: words}
		case reflect.TypeFor[json.RawMessage]():
			return &jsonschema.Schema{Type: "object"}
		case reflect.TypeFor[workload.Phase]():
			var phases []any
			for _, phase := range workload.Phases() {
				phases = append(phases, phase)
			}
			return &jsonschema.Schema{Type: "string", Enum: phases}
		}
		return nil
	}
	for _, pkg := range []string{
		"message/event", "spec/workload", "spec/capacity", "spec/resource", "message/query", "decide/quota", "policyfile/kueue", "message/httpapi",
	} {
		if err := r.AddGoComments("muster.dev/muster/test/contract", "../../pkg/"+pkg); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestSchemas(t *testing.T) {
	r := reflector(t)
	for _, m := range messages() {
		schema := r.Reflect(m.payload)
		schema.Title = m.payload.EventType()
		current(t, schemaFile(m), indented(t, schema))
	}
}

func schemaFile(m message) string { return filepath.Join("schemas", m.payload.EventType()+".json") }

func exampleFile(m message) string {
	return filepath.Join("schemas", "examples", m.payload.EventType()+".json")
}

// TestExamples: an event with every field set reads as it did, is what its schema
// says, and comes back whole. A change of the file is a change of what others
// read: new fields are fine, others need a new type.
func TestExamples(t *testing.T) {
	for _, m := range messages() {
		fill(reflect.ValueOf(m.payload).Elem(), "")
		envelope, err := event.New("example", "docs", fixedTime, m.payload)
		if err != nil {
			t.Fatal(err)
		}
		encoded := indented(t, envelope)
		current(t, exampleFile(m), encoded)
		parsed, err := event.Parse(encoded)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := event.Decode(parsed)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m.payload, decoded, cmp.Comparer(sameJSON)); diff != "" {
			t.Errorf("%s comes back otherwise (-sent +read):\n%s", m.payload.EventType(), diff)
		}
		compiled, err := validator.NewCompiler().Compile(filepath.Join(docs, schemaFile(m)))
		if err != nil {
			t.Fatal(err)
		}
		data, err := validator.UnmarshalJSON(bytes.NewReader(parsed.Data))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled.Validate(data); err != nil {
			t.Errorf("%s: %v", m.payload.EventType(), err)
		}
		if err := compiled.Validate(map[string]any{}); err == nil {
			t.Errorf("%s: the schema allows an event that says nothing", m.payload.EventType())
		}
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && x.String() == y.String()
}

// moment is when everything in the examples happens.
var fixedTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// fill sets every field to something.
func fill(v reflect.Value, name string) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(fixedTime))
		return
	case workload.Duration:
		v.Set(reflect.ValueOf(workload.Duration(90 * time.Second)))
		return
	case workload.Seconds:
		v.Set(reflect.ValueOf(workload.Seconds(90)))
		return
	case workload.Phase:
		v.Set(reflect.ValueOf(workload.Running))
		return
	case workload.Start:
		v.Set(reflect.ValueOf(workload.StartWhole))
		return
	case workload.OnLoss:
		v.Set(reflect.ValueOf(workload.EvictOnLoss))
		return
	case workload.CheckStatus:
		v.Set(reflect.ValueOf(workload.CheckReady))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(`{"apiVersion":"ray.io/v1","kind":"RayCluster"}`)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.Tag.Get("json") != "-" { // of a decision, never sent
				fill(v.Field(i), field.Name)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), name)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, name)
		fill(value, name)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("some " + name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Uint64:
		v.SetUint(1)
	}
}

func TestAsyncAPI(t *testing.T) {
	encoded, err := yaml.Marshal(asyncAPI(func(of any) any { return inline(t, of) }))
	if err != nil {
		t.Fatal(err)
	}
	current(t, "asyncapi.yaml", append([]byte("# Generated from the Go types: go test ./contract -update, in test.\n"), encoded...))
}

func indented(t *testing.T, value any) []byte {
	t.Helper()
	encoded, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(encoded, '\n')
}

// current holds a file of docs against what it should be.
func current(t *testing.T, file string, want []byte) {
	t.Helper()
	path := filepath.Join(docs, file)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Errorf("%v; `go test ./contract -update` writes it", err)
		return
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/%s is not current; `go test ./contract -update` writes it (-want +got):\n%s", file, diff)
	}
}
