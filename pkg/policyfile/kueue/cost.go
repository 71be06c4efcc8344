package kueue

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"muster.dev/muster/pkg/policyfile/strictyaml"
	"muster.dev/muster/pkg/spec/fault"
)

// costKey is the annotation of a ResourceFlavor with its costPerHour, such as
// "nvidia.com/gpu=2.5,cpu=0.04": the field itself is none of Kueue's definition, whose API
// server would drop it.
const costKey = "muster.dev/cost-per-hour"

// readCost has the annotation count as the field that it stands for.
func (o *Object) readCost() fault.List {
	written := text(o.origin.document, "metadata", "annotations", costKey)
	if written == "" {
		return nil
	}
	at := fault.Key("metadata.annotations", costKey)
	line := strictyaml.Line(o.origin.document, at)
	refuse := func(what string) fault.List {
		return fault.List{{Line: line, Path: o.origin.name + ": " + at, Text: what}}
	}
	if strictyaml.Field(o.origin.node, "costPerHour") != nil {
		return refuse("stands for spec.costPerHour, which is there, too; leave one of them out")
	}
	prices := &yaml.Node{Kind: yaml.MappingNode, Line: line}
	for part := range strings.SplitSeq(written, ",") {
		name, price, given := strings.Cut(strings.TrimSpace(part), "=")
		if !given || name == "" || price == "" || strictyaml.Field(prices, name) != nil {
			return refuse(fmt.Sprintf("%q: want RESOURCE=PRICE, separated by commas, each resource once, such as nvidia.com/gpu=2.5,cpu=0.04", written))
		}
		prices.Content = append(prices.Content, scalar(name, line), scalar(price, line))
	}
	o.origin.node.Content = append(o.origin.node.Content, scalar("costPerHour", line), prices)
	return nil
}

func scalar(value string, line int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Line: line}
}
