package submission

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

const manifestYAML = `apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: glue}
spec:
  headGroupSpec:
    template: {spec: {containers: [{name: ray, image: "rayproject/ray:2.52.0", resources: {limits: {cpu: 2}}}]}}
`

const manifestJSON = `{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "glue"}, "spec": {"headGroupSpec":
	{"template": {"spec": {"containers": [{"name": "ray", "image": "rayproject/ray:2.52.0", "resources": {"limits": {"cpu": 2}}}]}}}}}`

// attributes of a good submission; the values are JSON.
func attributes(more ...string) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	pairs := append([]string{
		"specversion", `"1.0"`, "id", `"1"`, "source", `"test"`, "type", `"` + event.SubmitType + `"`,
	}, more...)
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = json.RawMessage(pairs[i+1])
		if pairs[i+1] == "" {
			delete(all, pairs[i])
		}
	}
	return all
}

// structured is a CloudEvent in JSON; an empty value removes the attribute.
func structured(t *testing.T, more ...string) Message {
	t.Helper()
	data, err := json.Marshal(attributes(more...))
	if err != nil {
		t.Fatal(err)
	}
	return message(data, nil)
}

func message(data []byte, headers map[string][]string) Message {
	return Message{
		Subject: "muster.submit.research", Headers: headers, Data: data, Sequence: 7, Stored: time.Unix(1_800_000_000, 5),
	}
}

func binary(body string, more ...string) Message {
	headers := map[string][]string{"ce-specversion": {"1.0"}, "ce-id": {"1"}, "ce-source": {"test"}, "ce-type": {event.SubmitType}}
	for i := 0; i < len(more); i += 2 {
		headers[more[i]] = []string{more[i+1]}
		if more[i+1] == "" {
			delete(headers, more[i])
		}
	}
	return message([]byte(body), headers)
}

func quoted(text string) string {
	encoded, _ := json.Marshal(text) // a string always can
	return string(encoded)
}

func accepted(t *testing.T, m Message) (*event.WorkloadSubmitted, Result) {
	t.Helper()
	result, err := Read(ray.Shipped(), m)
	if err != nil {
		t.Fatal(err)
	}
	if result.Rejection != nil {
		t.Fatalf("rejected: %s", result.Rejection.Message)
	}
	payload, err := event.Decode(result.Event)
	if err != nil {
		t.Fatal(err)
	}
	return payload.(*event.WorkloadSubmitted), result
}

// TestWaysToSubmit: each encoding of a manifest gives the same workload with the same
// content.
func TestWaysToSubmit(t *testing.T) {
	t.Parallel()
	want, first := accepted(t, structured(t, "data", manifestJSON))
	if want.Workload.ID != event.WorkloadID("test", "1") || want.Workload.Queue != "research" || want.Workload.Name != "glue" ||
		want.Workload.Pods() != 1 || first.Subject != "muster.workload.research" {
		t.Errorf("workload %+v on %s", want.Workload, first.Subject)
	}
	for name, m := range map[string]Message{
		"YAML in a string":      structured(t, "datacontenttype", `"application/yaml"`, "data", quoted(manifestYAML)),
		"JSON in a string":      structured(t, "data", quoted(manifestJSON)),
		"data_base64":           structured(t, "data_base64", `"`+base64.StdEncoding.EncodeToString([]byte(manifestYAML))+`"`),
		"binary mode, YAML":     binary(manifestYAML, "content-type", "application/yaml"),
		"binary mode, JSON":     binary(manifestJSON, "Content-Type", "application/json"),
		"headers in upper case": binary(manifestYAML, "ce-id", "", "Ce-Id", "1"),
	} {
		t.Run(name, func(t *testing.T) {
			got, result := accepted(t, m)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-JSON object +this):\n%s", name, diff)
			}
			if result.Event.ID != first.Event.ID {
				t.Errorf("%s: event id %s, want %s", name, result.Event.ID, first.Event.ID)
			}
		})
	}
}

// TestIdentity: the event's id derives from the message and its content: a redelivery is
// the same event, and submitting again is another one.
func TestIdentity(t *testing.T) {
	t.Parallel()
	base, first := accepted(t, structured(t, "data", manifestJSON))
	again := structured(t, "data", manifestJSON)
	if _, result := accepted(t, again); result.Event.ID != first.Event.ID {
		t.Errorf("delivered again: event id %s, want %s", result.Event.ID, first.Event.ID)
	}
	again.Sequence, again.Stored = 99, again.Stored.Add(time.Hour)
	if submitted, result := accepted(t, again); result.Event.ID == first.Event.ID || submitted.Workload.ID != base.Workload.ID {
		t.Errorf("sent again: event id %s, workload %s; want another event of workload %s", result.Event.ID, submitted.Workload.ID, base.Workload.ID)
	}
	elsewhere := structured(t, "data", manifestJSON)
	elsewhere.Subject = "muster.submit.other"
	for name, m := range map[string]Message{
		"other manifest": structured(t, "data", strings.Replace(manifestJSON, `"cpu": 2`, `"cpu": 3`, 1)),
		"other priority": structured(t, "data", manifestJSON, "priority", "5"),
		"other queue":    elsewhere,
	} {
		t.Run(name, func(t *testing.T) {
			got, result := accepted(t, m)
			if got.Workload.ID != base.Workload.ID || got.Workload.Digest == base.Workload.Digest || result.Event.ID == first.Event.ID {
				t.Errorf("%s: workload %s, digest %s, event %s; want the same workload with other content", name, got.Workload.ID, got.Workload.Digest, result.Event.ID)
			}
		})
	}
	if got, _ := accepted(t, structured(t, "data", manifestJSON, "id", `"2"`)); got.Workload.ID == base.Workload.ID || got.Workload.Digest != base.Workload.Digest {
		t.Errorf("other id: workload %s, digest %s; want another workload with the same content", got.Workload.ID, got.Workload.Digest)
	}
}

func TestPriority(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int32{"5": 5, `"-7"`: -7, "null": 0, "2147483647": 2147483647} {
		t.Run(text, func(t *testing.T) {
			if got, _ := accepted(t, structured(t, "data", manifestJSON, "priority", text)); got.Workload.Priority != want {
				t.Errorf("priority %s is read as %d, want %d", text, got.Workload.Priority, want)
			}
		})
	}
	if got, _ := accepted(t, binary(manifestYAML, "ce-priority", "3")); got.Workload.Priority != 3 {
		t.Errorf("priority in binary mode is read as %d, want 3", got.Workload.Priority)
	}
}

// TestPriorityClass: the extension counts before the labels, and Muster's label
// before Kueue's. It is content: another class is another submission.
func TestPriorityClass(t *testing.T) {
	t.Parallel()
	labelled := func(labels string) string {
		return strings.Replace(manifestJSON, `"name": "glue"`, `"name": "glue", "labels": {`+labels+`}`, 1)
	}
	const muster, kueue = `"muster.dev/priority-class": "ours"`, `"kueue.x-k8s.io/priority-class": "theirs"`
	const wrapper = `{"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "metadata": {"name": "w", "labels": {` + kueue + `}},
		"spec": {"components": [{"template": ` + manifestJSON + `}]}}`
	for name, c := range map[string]struct {
		message Message
		want    string
	}{
		"none":                    {structured(t, "data", manifestJSON), ""},
		"null":                    {structured(t, "data", manifestJSON, "priorityclass", "null"), ""},
		"extension":               {structured(t, "data", manifestJSON, "priorityclass", `"urgent"`), "urgent"},
		"header":                  {binary(manifestYAML, "Ce-Priorityclass", "urgent"), "urgent"},
		"Kueue's label":           {structured(t, "data", labelled(kueue)), "theirs"},
		"both labels":             {structured(t, "data", labelled(kueue+","+muster)), "ours"},
		"extension before labels": {structured(t, "data", labelled(muster), "priorityclass", `"urgent"`), "urgent"},
		"label of an AppWrapper":  {structured(t, "data", wrapper), "theirs"},
		"extension before that":   {structured(t, "data", wrapper, "priorityclass", `"urgent"`), "urgent"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := accepted(t, c.message); got.PriorityClass != c.want || got.Workload.Priority != 0 {
				t.Errorf("%s: class %q, priority %d; want class %q", name, got.PriorityClass, got.Workload.Priority, c.want)
			}
		})
	}
	low, first := accepted(t, structured(t, "data", manifestJSON, "priorityclass", `"low"`))
	high, second := accepted(t, structured(t, "data", manifestJSON, "priorityclass", `"high"`))
	if low.Workload.Digest == high.Workload.Digest || first.Event.ID == second.Event.ID {
		t.Error("another priority class is the same content")
	}
}

// TestGeneratedNames come from the identity alone, and are in the manifest.
func TestGeneratedNames(t *testing.T) {
	t.Parallel()
	m := structured(t, "data", strings.Replace(manifestJSON, `"name": "glue"`, `"generateName": "glue-"`, 1))
	got, _ := accepted(t, m)
	again, _ := accepted(t, m)
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("read twice (-first +second):\n%s", diff)
	}
	var manifest struct{ Metadata map[string]string }
	if err := json.Unmarshal(got.Manifest, &manifest); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got.Workload.Name, "glue-") || !maps.Equal(manifest.Metadata, map[string]string{"name": got.Workload.Name}) {
		t.Errorf("name %q, metadata %v", got.Workload.Name, manifest.Metadata)
	}
}

func TestRejections(t *testing.T) {
	t.Parallel()
	at := func(subject string) Message {
		m := structured(t, "data", manifestJSON)
		m.Subject = subject
		return m
	}
	const unknown = workload.ID("")
	known := event.WorkloadID("test", "1")
	for _, c := range []struct {
		name    string
		message Message
		id      workload.ID
		want    string
	}{
		{"nothing", message(nil, nil), unknown, "the message is empty"},
		{"no JSON", message([]byte("kind: RayCluster"), nil), unknown, "or the manifest with the headers ce-id, ce-source, ce-type and ce-specversion"},
		{"a bare manifest", message([]byte(manifestJSON), nil), unknown, `CloudEvents attribute "specversion" is missing or empty`},
		{"no id", structured(t, "data", manifestJSON, "id", ""), unknown, `CloudEvents attribute "id" is missing or empty`},
		{"no source", structured(t, "data", manifestJSON, "source", ""), unknown, `CloudEvents attribute "source" is missing or empty`},
		{"id of another type", structured(t, "data", manifestJSON, "id", "5"), unknown, "not a CloudEvent in JSON"},
		{"other version", structured(t, "data", manifestJSON, "specversion", `"0.3"`), unknown, `specversion is "0.3", want "1.0"`},
		{"no id in binary mode", binary(manifestYAML, "ce-id", ""), unknown, "in binary mode it is the header ce-<attribute>"},
		{"other type", structured(t, "data", manifestJSON, "type", `"com.example.order"`), known, `CloudEvents attribute "type" is "com.example.order"; want "dev.muster.workload.submit.v1"`},
		{"no data", structured(t), known, "the CloudEvent has no data"},
		{"null", structured(t, "data", "null"), known, "the CloudEvent has no data"},
		{"data twice", structured(t, "data", manifestJSON, "data_base64", `"aGk="`), known, "has both data and data_base64"},
		{"empty body in binary mode", binary(""), known, "the CloudEvent has no data"},
		{"a number", structured(t, "data", "7"), known, "manifest: is the number 7"},
		{"bad priority", structured(t, "data", manifestJSON, "priority", `"high"`), known, `CloudEvents attribute "priority" is "high"; want a whole number`},
		{"priority and class", structured(t, "data", manifestJSON, "priority", "0", "priorityclass", `"urgent"`), known, `CloudEvents attribute "priority" is 0, and CloudEvents attribute "priorityclass" is "urgent"; want one of them`},
		{"priority and label", structured(t, "data", strings.Replace(manifestJSON, `"name": "glue"`, `"name": "glue", "labels": {"muster.dev/priority-class": "urgent"}`, 1), "priority", "3"), known, `CloudEvents attribute "priority" is 3, and the label for the priority class is "urgent"; want one of them`},
		{"long class", structured(t, "data", manifestJSON, "priorityclass", quoted(strings.Repeat("a", 254))), known, "has 254 bytes; want the name of a priority class, of at most 253"},
		{"class is a number", structured(t, "data", manifestJSON, "priorityclass", "7"), known, "priorityclass"},
		{"bad manifest", structured(t, "data", quoted("kind: Pod")), known, `kind: is "Pod"; want RayCluster, RayJob, RayService, AppWrapper or PodSets`},
		{"too large", structured(t, "data", quoted(strings.Repeat("#", event.MaxSubmission))), known, "at most 524288 are accepted"},
		{"too large in binary mode", binary(strings.Repeat("#", event.MaxSubmission)), known, "at most 524288 are accepted"},
		{"impossible queue", at("muster.submit.Research_1"), known, `queue "Research_1": want a name of at most 63 lower-case letters, digits and dashes`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			result, err := Read(ray.Shipped(), c.message)
			if err != nil {
				t.Fatal(err)
			}
			if result.Rejection == nil {
				t.Fatalf("accepted as %s", result.Workload)
			}
			payload, err := event.Decode(result.Event)
			if err != nil {
				t.Fatal(err)
			}
			queue := c.message.Subject[len("muster.submit."):]
			rejected := payload.(*event.WorkloadRejected)
			if rejected.Queue != queue || rejected.Reason.Kind != workload.ReasonInvalid || !strings.Contains(rejected.Reason.Message, c.want) {
				t.Errorf("rejection %+v, want %q in its message", rejected, c.want)
			}
			token := string(c.id)
			if c.id == unknown {
				token = "_"
			}
			if rejected.Workload != c.id || result.Subject != "muster.events."+queue+"."+token {
				t.Errorf("workload %q on %s, want %q", rejected.Workload, result.Subject, c.id)
			}
			again, err := Read(ray.Shipped(), c.message)
			if err != nil || again.Event.ID != result.Event.ID {
				t.Errorf("read again: event id %s, error %v; want %s", again.Event.ID, err, result.Event.ID)
			}
		})
	}
}

// FuzzRead checks that every message has a result, and each event of a batch has one.
func FuzzRead(f *testing.F) {
	good, err := json.Marshal(attributes("data", manifestJSON, "priority", "1"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, "")
	f.Add([]byte(manifestYAML), "1")
	for _, hostile := range []string{"1e99999999", "1e-99999999", strings.Repeat("9", 1000)} {
		f.Add([]byte(wrapping("PersistentVolumeClaim", "v\"},\"spec\":{\"resources\":{\"requests\":{\"storage\":\""+hostile+"\"}}},\"x\":{\"y\":\"")), "1")
	}
	f.Add([]byte(wrapping("K"+strings.Repeat("k", 4000), "../../x")), "1")
	f.Add([]byte(manifestYAML), "\x1b[2J\n\x00")
	f.Add(fmt.Appendf(nil, "[%s, %s, 1]", good, good), "")
	f.Fuzz(func(t *testing.T, data []byte, id string) {
		m := message(data, nil)
		if id != "" {
			m = binary(string(data), "ce-id", id)
		}
		for _, part := range Split(m) {
			result, err := Read(ray.Shipped(), part)
			if err != nil {
				t.Fatal(err)
			}
			if result.Event.ID == "" || result.Subject == "" || strings.Contains(fmt.Sprint(result.Rejection), "cannot read the submission: ") {
				t.Fatalf("result %+v", result)
			}
			passesAtQueueManager(t, result)
		}
	})
}

// passesAtQueueManager checks that queue-manager takes from the intake of a further cluster what this one
// accepts.
func passesAtQueueManager(t *testing.T, result Result) {
	t.Helper()
	if result.Rejection != nil {
		return
	}
	payload, err := event.Decode(result.Event)
	if err != nil {
		t.Fatal(err)
	}
	submitted := payload.(*event.WorkloadSubmitted)
	if submitted.Workload.Namespace == "" {
		submitted.Workload.Namespace = "n" // an object has one
	}
	if err := event.CheckReported(submitted, time.Now()); err != nil {
		t.Fatalf("%v: %s", err, result.Event.Data)
	}
}

// TestNamesAreChecked: attributes that cannot be printed or stored are refused; the
// rejection repeats only a little of them.
func TestNamesAreChecked(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		message Message
		want    string
	}{
		"a long id":        {binary(manifestYAML, "ce-id", long), `CloudEvents attribute "id" has 5000 bytes; want at most 256`},
		"a long source":    {binary(manifestYAML, "ce-source", long), `CloudEvents attribute "source" has 5000 bytes; want at most 1024`},
		"an escape":        {binary(manifestYAML, "ce-id", "\x1b[2J"), `CloudEvents attribute "id" is "\x1b[2J"; want printable characters alone`},
		"a row":            {binary(manifestYAML, "ce-source", "a\nteam-b  train  Running"), `"source" is "a\nteam-b  train  Running"; want printable`},
		"a message id":     {binary(manifestYAML, "Nats-Msg-Id", long), "the header Nats-Msg-Id has 5000 bytes"},
		"a priority class": {binary(manifestYAML, "ce-priorityclass", "a b"), "want the name of a priority class"},
		"a long kind":      {binary(wrapping("K"+long, "n"), "ce-id", "1"), "want at most 50 letters and digits"},
		"a long name":      {binary(wrapping("ConfigMap", long), "ce-id", "1"), "spec.components[1].template.metadata.name: is "},
		"a path as name":   {binary(wrapping("ConfigMap", "../../x"), "ce-id", "1"), `spec.components[1].template.metadata.name: is "../../x"`},
		"a wrapped Secret": {binary(wrapping("Secret", "s"), "ce-id", "1"), "Muster stores manifests in clear"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := Read(ray.Shipped(), c.message)
			if err != nil {
				t.Fatal(err)
			}
			if result.Rejection == nil || !strings.Contains(result.Rejection.Message, c.want) {
				t.Errorf("rejection %v, want %q in it", result.Rejection, c.want)
			}
			if len(result.Event.Data) > 8000 {
				t.Errorf("the rejection has %d bytes", len(result.Event.Data))
			}
		})
	}
}

// wrapping returns an AppWrapper with a pod and an object of that kind and name.
func wrapping(kind, name string) string {
	return `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","metadata":{"name":"a"},"spec":{"components":[
		{"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}},
		{"template":{"apiVersion":"v1","kind":"` + kind + `","metadata":{"name":"` + name + `"}}}]}}`
}
