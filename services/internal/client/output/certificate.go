package output

import (
	"fmt"
	"io"
	"strings"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Verified writes what a certificate proves, and how, once it has been verified.
func Verified(w io.Writer, d *certificate.Document) error {
	pods := workload.Workload{PodSets: d.PodSets}.Pods()
	if _, err := fmt.Fprintf(w, "Proven: workload %s (%s) cannot start.\n", Cell(string(d.Workload)), plural(pods, "pod")); err != nil {
		return err
	}
	for _, a := range d.Alternatives {
		indent := ""
		if len(a.Flavors) > 0 {
			if _, err := fmt.Fprintf(w, "With %s:\n", Cell(flavorsOf(a.Flavors))); err != nil {
				return err
			}
			indent = "  "
		}
		if q := a.Quota; q != nil {
			if _, err := fmt.Fprintf(w, "%s- quota: its pods request %s %s, the queue may use %s\n", indent,
				amount(q.Resource, q.Asked), Cell(string(q.Resource)), amount(q.Resource, q.Available)); err != nil {
				return err
			}
		}
		for i, argument := range a.Arguments {
			nodes := 0
			for _, c := range d.Clusters[i].Classes {
				nodes += c.Nodes
			}
			if _, err := fmt.Fprintf(w, "%s- cluster %s (%s): %s\n", indent, Cell(argument.Cluster), plural(nodes, "node"), proof(d, &argument)); err != nil {
				return err
			}
		}
	}
	_, err := io.WriteString(w, "The proof is about the nodes and quota that the certificate states: compare them with the cluster.\n")
	return err
}

// proof returns an argument in words.
func proof(d *certificate.Document, a *certificate.Argument) string {
	asked := 0
	for _, set := range d.PodSets {
		if set.Name == a.PodSets[0] {
			asked = set.Count
		}
	}
	sets := Cell(strings.Join(a.PodSets, ", "))
	switch a.Proof {
	case placement.Counted:
		return fmt.Sprintf("counted: there is room for %d of the %d pods of %s", a.Room, asked, sets)
	case placement.Summed:
		return fmt.Sprintf("summed: pods of %s request %s %s, %s is free on nodes that take any of them", sets,
			amount(a.Resource, a.Asked), Cell(string(a.Resource)), amount(a.Resource, a.Free))
	case certificate.Divided:
		return fmt.Sprintf("divided: no single domain of %s has room for %s", Cell(a.Key), sets)
	case certificate.NotOffered:
		return fmt.Sprintf("not offered: %s have flavor %s, which the cluster does not offer", sets, Cell(a.Flavor))
	case certificate.Sliced:
		return fmt.Sprintf("sliced: the domains of %s have room for %s of %s", Cell(a.Key), plural(a.Room, "slice"), sets)
	}
	return fmt.Sprintf("searched: no way to place the pods of %s keeps all rules", sets)
}

func amount(name resource.Name, n int64) string { return resource.Format(name, n) }

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func flavorsOf(all []workload.PodSetFlavors) string {
	var parts []string
	for _, f := range all {
		var names []string
		list := resource.List{}
		for name := range f.Flavors {
			list[name] = 1
		}
		for _, name := range list.Names() {
			names = append(names, fmt.Sprintf("%s of flavor %s", name, f.Flavors[name]))
		}
		parts = append(parts, fmt.Sprintf("%s for pod set %s", strings.Join(names, ", "), f.PodSet))
	}
	return strings.Join(parts, "; ")
}
