package compose

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// file is what `config` of either Compose prints, as far as it is looked at.
type file struct {
	Services map[string]struct {
		ReadOnly    bool     `json:"read_only"`
		CapDrop     []string `json:"cap_drop"`
		SecurityOpt []string `json:"security_opt"`
		MemLimit    any      `json:"mem_limit"` // text or number
		PidsLimit   int      `json:"pids_limit"`
		Ports       []any    `json:"ports"` // short or long form
	} `json:"services"`
}

func decode(t *testing.T, config []byte) file {
	t.Helper()
	var f file
	if err := yaml.Unmarshal(config, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func loopbackOnly(port any) bool {
	switch p := port.(type) {
	case string:
		return strings.HasPrefix(p, "127.0.0.1:")
	case map[string]any:
		return p["host_ip"] == "127.0.0.1"
	}
	return false
}
