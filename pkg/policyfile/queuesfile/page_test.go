package queuesfile_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/policyfile/queuesfile"
	"muster.dev/muster/pkg/spec/workload"
)

// pageOf reads a page of the documentation.
func pageOf(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// lifeRow is a row of the table of rules: names, annotation, defaults.
var lifeRow = regexp.MustCompile("(?m)^\\| (`[a-zA-Z`, ]+`) \\| (?:`([a-z./-]+)`)? ?\\| ([^|]+) \\|")

// The table of docs/lifecycle.md has every rule of a queue, with its annotation and
// its default, and no other.
func TestThePageHasAllRulesOfLives(t *testing.T) {
	t.Parallel()
	_, table, found := strings.Cut(pageOf(t, "lifecycle.md"), "| `life:` of the queue |")
	table, _, closed := strings.Cut(table, "\n\n")
	if !found || !closed {
		t.Fatal("the page has no table of rules")
	}
	type rule struct{ annotation, usual string }
	documented := map[string]rule{}
	for _, row := range lifeRow.FindAllStringSubmatch(table, -1) {
		names, usual := strings.Split(row[1], ", "), strings.Split(row[3], ", ")
		if len(names) != len(usual) {
			t.Fatalf("%q has %d names and %d defaults", row[0], len(names), len(usual))
		}
		for i, name := range names {
			documented[strings.Trim(name, "`")] = rule{row[2], strings.Trim(usual[i], "` ")}
		}
	}
	annotations := map[string]string{
		"readyDeadline": kube.ReadyDeadlineKey, "onPodLoss": kube.OnPodLossKey, "start": kube.StartKey, "checkpointGrace": kube.CheckpointGraceKey,
		"checkpointInterval": kube.CheckpointIntervalKey, "maxRunTime": kube.MaxRunTimeKey, "idleTime": kube.IdleTimeKey, "runTime": kube.RunTimeKey,
	}
	want := map[string]rule{}
	usual := reflect.ValueOf(workload.Rules{}.WithDefaults())
	for _, field := range reflect.VisibleFields(usual.Type()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || slices.Contains([]string{"podPolicy", "objectPolicy", "submitters", "identities", "strayPods", "onLostCluster", "homeObjects", "moves", "preferClusters", "carries", "tolerance", "limits"}, name) { // not under life
			continue
		}
		want[name] = rule{annotations[name], shown(name, usual.FieldByIndex(field.Index))}
	}
	if diff := cmp.Diff(want, documented, cmp.AllowUnexported(rule{})); diff != "" {
		t.Errorf("rules (-code +page):\n%s", diff)
	}
}

// shown is a default as the page writes it.
func shown(name string, value reflect.Value) string {
	switch v := value.Interface().(type) {
	case workload.Duration:
		if v == 0 && name != "checkpointGrace" {
			return "none"
		}
		text := time.Duration(v).String() // 15m0s, 1h0m0s
		if strings.HasSuffix(text, "m0s") {
			text = strings.TrimSuffix(text, "0s")
		}
		if strings.HasSuffix(text, "h0m") {
			text = strings.TrimSuffix(text, "0m")
		}
		return text
	case workload.Seconds:
		return shown(name, reflect.ValueOf(v.Duration()))
	case workload.Start:
		return v.String()
	case workload.OnLoss:
		return v.String()
	case *int:
		return string(rune('0' + *v))
	default:
		return value.String()
	}
}

// yamlBlock is a block of YAML on a page.
var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Every example of a queues file on these pages is one, as it stands.
func TestTheExamplesOfThePagesAreQueuesFiles(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]int{"queues.md": 5, "backfill.md": 1, "operations.md": 2} {
		t.Run(page, func(t *testing.T) {
			blocks := yamlBlock.FindAllStringSubmatch(pageOf(t, page), -1)
			blocks = slices.DeleteFunc(blocks, func(b []string) bool { return !strings.HasPrefix(b[1], "queues:") })
			if len(blocks) != want {
				t.Errorf("%s has %d queues files, want %d", page, len(blocks), want)
			}
			for _, block := range blocks {
				if _, notes, err := queuesfile.Read([]byte(block[1])); err != nil || len(notes) > 0 {
					t.Errorf("%s: %v %q\n%s", page, err, notes, block[1])
				}
			}
		})
	}
}

// Every limit of a queue, and no other, has a row on the page.
func TestThePageHasAllLimits(t *testing.T) {
	t.Parallel()
	_, table, found := strings.Cut(pageOf(t, "queues.md"), "| `limits:` of the queue |")
	table, _, closed := strings.Cut(table, "\n\n")
	if !found || !closed {
		t.Fatal("the page has no table of limits")
	}
	var documented, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(table, -1) {
		documented = append(documented, row[1])
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[workload.Limits]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		want = append(want, name)
	}
	slices.Sort(documented)
	slices.Sort(want)
	if diff := cmp.Diff(want, documented); diff != "" {
		t.Errorf("limits (-code +page):\n%s", diff)
	}
}
