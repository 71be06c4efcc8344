package output

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Amounts are written as Kubernetes writes them, in each machine-readable format, and
// nothing else changes.
func TestAmountsAreQuantities(t *testing.T) {
	t.Parallel()
	limit := int64(1500)
	for _, c := range []struct {
		name   string
		format Format
		value  any
		want   string // without spaces
	}{
		{"a list", JSON, query.Node{Reserved: resource.List{resource.CPU: 2000, resource.Memory: 16 << 30, "nvidia.com/gpu": 3}},
			`"reserved":{"cpu":"2","memory":"16Gi","nvidia.com/gpu":"3"}`},
		{"as YAML", YAML, query.Node{Free: resource.List{resource.CPU: 500}}, `free:cpu:500m`},
		{"as a path", "jsonpath={.free.cpu}", query.Node{Free: resource.List{resource.CPU: -500}}, `-500m`},
		{"a shortage", JSON, workload.Shortage{Pods: 4, Resource: resource.CPU, Asked: 8000, Largest: 250, Sum: 9000, Nodes: 3},
			`"pods":4,"unplaced":0,"resource":"cpu","asked":"8","largest":"250m","sum":"9","eligible":0,"nodes":3`},
		{"a line of quota", JSON, quota.Line{FlavorResource: quota.FlavorResource{Resource: resource.CPU}, Nominal: 4000, LendingLimit: &limit},
			`"nominal":"4","lendingLimit":"1500m","used":"0"`},
		{"no limit", JSON, json.RawMessage(`{"resource":"cpu","lendingLimit":null}`), `"lendingLimit":null`},
		{"an event is as in the stream", JSON, json.RawMessage(`{"requests":{"cpu":2000}}`), `"cpu":2000`},
		{"a manifest has its own", JSON, map[string]any{"manifest": map[string]any{"requests": map[string]any{"cpu": 1}}}, `"cpu":1`},
		{"a list of objects is no list of amounts", JSON, map[string]any{"resources": []map[string]any{{"name": "cpu", "nominalQuota": 8}}}, `"nominalQuota":8`},
		{"a large number keeps its digits", JSON, query.WhatIfAnswer{Version: 9007199254740993}, `"version":9007199254740993`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := Print(&out, c.format, c.value, nil); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(strings.Fields(out.String()), ""); !strings.Contains(got, c.want) {
				t.Errorf("want %s in %s", c.want, out.String())
			}
		})
	}
}
