package main

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// remove takes a node away, but never more than a third of them.
func (n *nemesis) remove(ctx context.Context) error {
	name := n.node()
	if len(n.gone)+len(n.broken) >= n.nodes/3 || n.gone[name] {
		return errNothing
	}
	n.gone[name] = true
	delete(n.broken, name)
	return n.Node(ctx, "remove", name)
}

func (n *nemesis) add(ctx context.Context) error {
	for name := range n.gone {
		return n.addNamed(ctx, name)
	}
	return errNothing
}

func (n *nemesis) addNamed(ctx context.Context, name string) error {
	err := n.Node(ctx, "add", "--pattern", name, "--label", "test.muster.dev/pool="+n.Pool,
		"--resource", "cpu=8", "--resource", "memory=64Gi", "--resource", "nvidia.com/gpu=4")
	if err != nil {
		return fmt.Errorf("add node %s: %w", name, err)
	}
	delete(n.gone, name)
	return nil
}

func (n *nemesis) breakNode(ctx context.Context) error {
	name := n.node()
	if len(n.gone)+len(n.broken) >= n.nodes/3 || n.gone[name] || n.broken[name] {
		return errNothing
	}
	n.broken[name] = true
	return n.Node(ctx, "break", name)
}

func (n *nemesis) repairNode(ctx context.Context) error {
	for name := range n.broken {
		delete(n.broken, name)
		return n.Node(ctx, "repair", name)
	}
	return errNothing
}

func (n *nemesis) cordon(ctx context.Context) error { return n.Node(ctx, "cordon", n.node()) }

// uncordon takes marks of an operator away from some node.
func (n *nemesis) uncordon(ctx context.Context) error {
	name := n.node()
	if n.gone[name] {
		return errNothing
	}
	if err := n.taint(ctx, name); err != nil {
		return err
	}
	return n.Node(ctx, "uncordon", name)
}

func (n *nemesis) drain(ctx context.Context) error {
	name := n.node()
	if n.gone[name] || n.broken[name] {
		return errNothing
	}
	return n.taint(ctx, name, corev1.Taint{Key: "muster.dev/drain", Effect: corev1.TaintEffectNoSchedule})
}

// taint gives a node exactly these taints, but leaves those of a broken one.
func (n *nemesis) taint(ctx context.Context, name string, taints ...corev1.Taint) error {
	if n.broken[name] {
		return errNothing
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"taints": taints}})
	if err != nil {
		return err
	}
	_, err = n.Kube.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
