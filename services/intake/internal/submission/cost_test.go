package submission

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/intake/internal/budget"
)

// repeated returns as many whole repetitions as fit into n bytes.
func repeated(text string, n int) string { return strings.Repeat(text, n/len(text)) }

// numbered repeats the text with a number that differs each time.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n-len(format)-5; i++ {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// costly returns documents of about n bytes that cost much to read for their size.
func costly(n int) map[string]string {
	const (
		asJSON  = `{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"a"},"spec":{"headGroupSpec":{"template":{"spec":{"containers":[{"name":"a","image":"a"%s}%s]}}},"x":%s}}`
		asYAML  = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: a}\nspec:\n  headGroupSpec: {template: {spec: {containers: [{name: a, image: a}%s]}}}\n  %s\n"
		wrapper = `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","metadata":{"name":"a","namespace":"a"},"spec":{"components":[%s]}}`
	)
	unknown := func(x string) string { return fmt.Sprintf(asJSON, "", "", x) }
	known := func(groups string) string {
		return strings.Replace(unknown("["+groups+"]"), `"x":`, `"workerGroupSpecs":`, 1)
	}
	return map[string]string{
		"lists":            unknown("[" + repeated("[],", n) + "1]"),
		"objects":          unknown("[" + repeated("{},", n) + "1]"),
		"numbers":          unknown("[" + repeated("1,", n) + "1]"),
		"keys":             unknown("{" + numbered(`"%x":1,`, n) + `"x":1}`),
		"depth":            unknown("[" + repeated(strings.Repeat(`{"a":`, 50)+"1"+strings.Repeat("}", 50)+",", n) + "1]"),
		"a text":           unknown(`"` + repeated("a", n) + `"`),
		"escapes":          unknown(`"` + repeated(`\u0001`, n) + `"`),
		"groups":           known(repeated("{},", n) + "{}"),
		"absent groups":    known(repeated("null,", n) + "{}"),
		"unknown fields":   known(repeated(`{"a":1},`, n) + "{}"),
		"containers":       fmt.Sprintf(asJSON, "", ","+repeated("{},", n)+"{}", "1"),
		"variables":        fmt.Sprintf(asJSON, `,"env":[`+repeated("{},", n)+"{}]", "", "1"),
		"quantities":       fmt.Sprintf(asJSON, `,"resources":{"limits":{`+numbered(`"a/%x":1,`, n)+`"cpu":1}}`, "", "1"),
		"labels":           strings.Replace(unknown("1"), `"name":"a"}`, `"name":"a","labels":{`+numbered(`"%x":"",`, n)+`"a":""}}`, 1),
		"components":       fmt.Sprintf(wrapper, repeated("{},", n)+"{}"),
		"YAML lists":       fmt.Sprintf(asYAML, "", "x: ["+repeated("[],", n)+"[]]"),
		"YAML words":       fmt.Sprintf(asYAML, "", "x: ["+repeated("a,", n)+"a]"),
		"YAML keys":        fmt.Sprintf(asYAML, "", "x: {"+numbered("%x: ,", n)+"x: 1}"),
		"YAML pairs":       fmt.Sprintf(asYAML, "", "x: ["+repeated("?,", n)+"a]"),
		"YAML dashes":      fmt.Sprintf(asYAML, "", "x:\n"+repeated("  -\n", n)),
		"YAML depth":       fmt.Sprintf(asYAML, "", "x: ["+repeated(strings.Repeat("{a: ", 50)+strings.Repeat("}", 50)+",", n)+"a]"),
		"YAML groups":      fmt.Sprintf(asYAML, "", "workerGroupSpecs: ["+repeated("{},", n)+"{}]"),
		"YAML fields":      fmt.Sprintf(asYAML, "", "workerGroupSpecs: ["+repeated("{a},", n)+"{}]"),
		"YAML containers":  fmt.Sprintf(asYAML, ", "+repeated("{},", n)+"{}", "x: 1"),
		"YAML tags":        fmt.Sprintf(asYAML, "", "x: ["+repeated("!a a,", n)+"a]"),
		"YAML comments":    fmt.Sprintf(asYAML, "", repeated("#\n", n)),
		"a configuration":  strings.Replace(unknown(`"`+repeated("[],", n)+`"`), `"x":`, `"serveConfigV2":`, 1),
		"another's option": strings.Replace(strings.Replace(unknown("1"), "RayCluster", "RayJob", 1), `"x":1`, `"runtimeEnvYAML":"a: [`+repeated("[],", n)+`1]","rayClusterSpec":{}`, 1),
	}
}

// TestMemoryOfAMessage: reading a message allocates no more than the budget counts for
// it. Allocated memory bounds used memory. The test is not parallel, because it measures
// the process.
func TestMemoryOfAMessage(t *testing.T) {
	for _, size := range []int{4 << 10, 50 << 10, event.MaxSubmission - 4<<10} {
		for name, document := range costly(size) {
			for mode, message := range asMessages(t, document) {
				allocated := allocatedBy(func() {
					for _, one := range Split(message) {
						if _, err := Read(ray.Shipped(), one); err != nil {
							t.Error(err)
						}
					}
				})
				if counted := budget.Needs(len(message.Data)); allocated > counted {
					t.Errorf("%s, %s: reading %d bytes allocates %d MiB, %d for a byte; the budget counts %d MiB",
						name, mode, len(message.Data), allocated>>20, allocated/int64(len(message.Data)), counted>>20)
				}
			}
		}
	}
}

// asMessages returns the document in the ways in which a submission may carry it.
func asMessages(t *testing.T, document string) map[string]Message {
	t.Helper()
	quoted, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	message := Message{Subject: "muster.submit.default", Submitter: "nats", Stored: time.Now(), Sequence: 1}
	structured, binary := message, message
	structured.Data = fmt.Appendf(nil, `{"specversion":"1.0","id":"1","source":"s","type":%q,"data":%s}`, event.SubmitType, quoted)
	binary.Headers = map[string][]string{"ce-id": {"1"}, "ce-source": {"s"}, "ce-type": {event.SubmitType}, "ce-specversion": {"1.0"}}
	binary.Data = []byte(document)
	return map[string]Message{"structured": structured, "binary": binary}
}

func allocatedBy(do func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestMemoryOfABatch: the same for a message that is a list of submissions, which
// are read one after the other.
func TestMemoryOfABatch(t *testing.T) {
	for name, event := range map[string]string{
		"nothing": "{}", "numbers": "1",
		"groups": `{"specversion":"1.0","id":"1","source":"s","type":"dev.muster.workload.submit.v1","data":"apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: a}\nspec: {workerGroupSpecs: [` + strings.Repeat("{},", 500) + `{}]}\n"}`,
	} {
		t.Run(name, func(t *testing.T) {
			message := Message{Subject: "muster.submit.default", Submitter: "nats", Stored: time.Now(), Sequence: 1, Data: []byte("[" + repeated(event+",", 500<<10) + event + "]")}
			if len(event) > 10 {
				message.Data = []byte("[" + strings.Repeat(event+",", maxBatch-1) + event + "]")
			}
			var ones []Message
			worst := allocatedBy(func() { ones = Split(message) })
			for _, one := range ones {
				worst = max(worst, allocatedBy(func() {
					if _, err := Read(ray.Shipped(), one); err != nil {
						t.Error(err)
					}
				}))
			}
			if counted := budget.Needs(len(message.Data)); worst > counted {
				t.Errorf("%s: reading %d bytes allocates %d MiB at once; the budget counts %d MiB", name, len(message.Data), worst>>20, counted>>20)
			}
		})
	}
}
