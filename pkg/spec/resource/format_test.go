package resource_test

import (
	"testing"

	"muster.dev/muster/pkg/spec/resource"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   resource.Name
		amount int64
		want   string
	}{
		{resource.CPU, 2000, "2"},
		{resource.CPU, 200, "200m"},
		{resource.CPU, 4500, "4.5"},
		{resource.CPU, 6750, "6750m"},
		{resource.Memory, 16 << 30, "16Gi"},
		{resource.Memory, 16_000_000_000, "16G"},
		{resource.Memory, 1536 << 20, "1536Mi"},
		{resource.Memory, 1001, "1001"},
		{resource.Memory, 0, "0"},
		{resource.Memory, -2 << 30, "-2Gi"},
		{"hugepages-2Mi", 4 << 20, "4Mi"},
		{"nvidia.com/gpu", 1000, "1000"},
	} {
		t.Run(test.want, func(t *testing.T) {
			if got := resource.Format(test.name, test.amount); got != test.want {
				t.Errorf("Format(%s, %d) = %q, want %q", test.name, test.amount, got, test.want)
			}
		})
	}
}
