package manifest_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/services/internal/client/manifest"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		content string
		want    []string
	}{
		"one document":          {"kind: RayJob\nmetadata: {name: a}\n", []string{"rayjob/a"}},
		"several":               {"---\nkind: RayJob\nmetadata: {name: a}\n---\nkind: RayCluster\nmetadata: {name: b}\n", []string{"rayjob/a", "raycluster/b"}},
		"comments and blanks":   {"# only this\n---\n\n---   # next\nkind: RayJob\nmetadata: {generateName: a-}\n--- \n", []string{"rayjob/a-*"}},
		"windows line ends":     {"kind: RayJob\r\nmetadata: {name: a}\r\n---\r\nkind: RayJob\r\nmetadata: {name: b}\r\n", []string{"rayjob/a", "rayjob/b"}},
		"JSON over lines":       {"{\"kind\": \"RayJob\",\n\"metadata\": {\"name\": \"a\"}}\n", []string{"rayjob/a"}},
		"a block with dashes":   {"kind: RayJob\nmetadata: {name: a}\nspec:\n  text: |\n    ---\n    more\n", []string{"rayjob/a"}},
		"no name":               {"kind: RayJob\n", []string{"manifest"}},
		"not YAML goes through": {"\t{{{", []string{"manifest"}},
		"dashes in a word":      {"---x: 1\n", []string{"manifest"}},
		"nothing":               {"\n# nothing\n", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, d := range manifest.Split([]byte(test.content)) {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSplitKeepsTheText(t *testing.T) {
	t.Parallel()
	text := "kind: RayJob # first\nmetadata: {name: a}\nspec: {x: 1.50}"
	documents := manifest.Split([]byte(text + "\n---\nkind: RayJob\n"))
	if len(documents) != 2 || string(documents[0].Raw) != text || documents[0].JSON {
		t.Errorf("the first document is %+v, want the text as written", documents)
	}
	if one := manifest.Split([]byte(`{"kind":"RayJob"}`)); len(one) != 1 || !one[0].JSON {
		t.Errorf("a JSON document was read as %+v", one)
	}
}

func TestInNamespace(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		content, namespace, want, wantError string
	}{
		"none asked":   {"kind: RayJob\nmetadata: {name: a}", "", "", ""},
		"set":          {"kind: RayJob\nmetadata: {name: a}", "team", "team", ""},
		"same":         {"kind: RayJob\nmetadata: {name: a, namespace: team}", "team", "team", ""},
		"other":        {"kind: RayJob\nmetadata: {name: a, namespace: mine}", "team", "", `rayjob/a is in namespace "mine", but --namespace is "team"; want the same`},
		"not readable": {"\t{{{", "team", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed, err := manifest.Split([]byte(test.content))[0].InNamespace(test.namespace)
			if test.wantError != "" {
				if err == nil || err.Error() != test.wantError {
					t.Errorf("got %v, want %s", err, test.wantError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if changed.Namespace != test.want {
				t.Errorf("namespace is %q, want %q", changed.Namespace, test.want)
			}
			if test.want != "" && !strings.Contains(string(changed.Raw), test.want) {
				t.Errorf("the text lacks the namespace: %s", changed.Raw)
			}
		})
	}
}

// FuzzSplit: whatever a file has, no document is empty, none is taken apart further
// when it comes alone, and nothing of the file but separators, comments and blanks
// is left out.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("---\nkind: RayJob\nmetadata: {name: a}\n--- # next\nkind: RayCluster\n"))
	f.Add([]byte(`{"kind": "RayJob", "metadata": {"generateName": "a-"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		sent := 0
		for _, d := range manifest.Split(data) {
			if len(bytes.TrimSpace(d.Raw)) == 0 || d.JSON != json.Valid(d.Raw) {
				t.Fatalf("document %q, JSON %t", d.Raw, d.JSON)
			}
			if again := manifest.Split(d.Raw); len(again) != 1 || !bytes.Equal(again[0].Raw, d.Raw) {
				t.Fatalf("document %q comes alone as %d", d.Raw, len(again))
			}
			sent += len(d.Raw)
		}
		left := 0
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' && !bytes.HasPrefix(line, []byte("---")) {
				left += len(line)
			}
		}
		if sent < left {
			t.Fatalf("%d bytes of %d are sent", sent, left)
		}
	})
}
