package fleet

import (
	"strings"
	"testing"
)

// FuzzParse: whatever is in a fleet file, it is an error or nodes, as many as it
// says.
func FuzzParse(f *testing.F) {
	for _, name := range PresetNames() {
		if data, ok := preset(name); ok && len(data) < 4<<10 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fleet, err := parse(data, "fuzzed")
		if err != nil {
			return
		}
		want := 0
		for _, g := range fleet.Groups {
			want += g.count()
		}
		if got := len(fleet.Nodes()); got != want {
			t.Fatalf("%d nodes, want %d", got, want)
		}
	})
}

// FuzzOpenB: the same for the node list of a trace.
func FuzzOpenB(f *testing.F) {
	header := strings.Join(openbColumns, ",") + "\n"
	f.Add(header + "openb-node-0000,64000,262144,2,P100\n")
	f.Add(header + "a,-1,9223372036854775807,9223372036854775807,\n")
	f.Fuzz(func(t *testing.T, data string) {
		fleet, err := readOpenB(strings.NewReader(data))
		if err == nil && len(fleet.Nodes()) != len(fleet.Groups) {
			t.Fatalf("%d nodes of %d rows", len(fleet.Nodes()), len(fleet.Groups))
		}
	})
}
