package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
	"muster.dev/muster/services/internal/client/times"
)

// usageOptions are the flags of "usage".
type usageOptions struct {
	server           *server
	output           output.Format
	since, until     string
	by               []string
	queue, namespace string
	resources        []string
	prices           []string
}

func usageCommand(s *server) *cobra.Command {
	o := &usageOptions{server: s}
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show who used what: GPU hours and other resources, waits and cost",
		Long: `Sum what workloads held between two times, from the history of the ledger, to the
microsecond. RESERVED is the time from the admission until the places were free again:
STARTING before all pods were ready, RUNNING, and STOPPING from the beginning of the removal
on. Of RUNNING, LOST was undone by an eviction (since the last reported checkpoint), and
IDLE is how long RayClusters that have ended had been idle. WASTED is STARTING, LOST and
IDLE together. Waits are of the admissions in that time.

The columns are hours of a unit: a GPU, a core, a gibibyte. Without --resource the text
has accelerators only, and csv and json have all resources. In json the unit is a second,
and a byte.

A time is RFC 3339, a date of UTC, or how long ago it is, such as 24h or 7d. Prices are
of an hour of a unit (memory: of a byte). Those of a flavor come first. What has none
costs what its flavor does (costPerHour).`,
		Example: `  muster usage --since 7d --by queue
  muster usage --since 2026-01-01 --until 2026-02-01 --by namespace,flavor -o csv
  muster usage --since 30d --by user --price nvidia.com/gpu=2.50 --price a100:nvidia.com/gpu=3.10`,
		Args: program.Args(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.since, "since", "24h", "the `time` at which the report begins")
	flags.StringVar(&o.until, "until", "", "the `time` at which it ends (default: now)")
	flags.StringSliceVar(&o.by, "by", []string{query.ByQueue}, "the `keys` of the rows: "+strings.Join(query.UsageKeys(), ", "))
	flags.StringVarP(&o.queue, "queue", "q", "", "only what is of this `queue`")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "only what is of this `namespace`")
	flags.StringSliceVar(&o.resources, "resource", nil, "only these `resources`")
	flags.StringSliceVar(&o.prices, "price", nil, "a `price` of an hour: RESOURCE=NUMBER or FLAVOR:RESOURCE=NUMBER (may be repeated)")
	o.output = output.Text
	flags.VarP(output.OrCSV(&o.output), "output", "o", "text (or table), csv, json, yaml or jsonpath=EXPRESSION")
	program.CompleteFlag(cmd, "by", program.Fixed(query.UsageKeys()))
	program.CompleteFlag(cmd, "output", program.Fixed([]string{"text", "csv", "json", "yaml"}))
	return cmd
}

func (o *usageOptions) run(cmd *cobra.Command) error {
	request, err := o.request(time.Now())
	if err != nil {
		return err
	}
	return o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
		answer, err := client.Usage(ctx, request)
		if err != nil {
			return err
		}
		if o.output == output.CSV {
			return output.UsageCSV(cmd.OutOrStdout(), answer)
		}
		if err := output.Print(cmd.OutOrStdout(), o.output, answer, func() output.Table { return output.Usage(answer, len(o.resources) > 0) }); err != nil {
			return err
		}
		if !o.output.Data() {
			if answer.Oldest.IsZero() || answer.Oldest.After(answer.Since) {
				_, err = fmt.Fprintln(cmd.ErrOrStderr(), output.UsageBegins(answer))
			}
		}
		return err
	})
}

func (o *usageOptions) request(now time.Time) (query.UsageRequest, error) {
	r := query.UsageRequest{By: o.by, Queue: o.queue, Namespace: o.namespace, Until: now}
	for flag, given := range map[string]struct {
		text   string
		target *time.Time
	}{"since": {o.since, &r.Since}, "until": {o.until, &r.Until}} {
		if given.text == "" {
			continue
		}
		at, err := times.Parse(given.text, now)
		if err != nil {
			return r, exit.Usagef("--%s %q: %s", flag, given.text, times.Want)
		}
		*given.target = at
	}
	for _, name := range o.resources {
		r.Resources = append(r.Resources, resource.Name(name))
	}
	for _, text := range o.prices {
		price, err := query.ParsePrice(text)
		if err != nil {
			return r, exit.Usagef("--price: %w", err)
		}
		r.Prices = append(r.Prices, price)
	}
	r.By = slices.DeleteFunc(slices.Clone(r.By), func(key string) bool { return key == "" })
	if err := r.Check(now); err != nil {
		return r, exit.Usagef("%w", err)
	}
	return r, nil
}
