// Command compose makes the secrets of the local stack in containers, and those of an
// installation without secrets: keys of the NATS users and their accounts, certificates,
// passwords of Postgres' roles and the URLs with them. Existing ones stay, as do clusters,
// tenants, checkers and intakes of earlier runs; -remove removes one. It prints what it changes.
//
//	compose [-cluster NAME]... [-tenant NAME=QUEUE,...]... [-named-tenant NAME=QUEUE,...]...
//	        [-checker CHECK]... [-intake CLUSTER=QUEUE,...]... [-remove KIND=NAME]... [-host NAME]... DIR
//
// It starts nothing. It is not for installations with a certificate authority or a
// secret store.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"muster.dev/muster/deploy/certificates"
	"muster.dev/muster/deploy/nats/users"
)

// local is the dev cluster's name in docker-compose.yaml.
const local = "local"

// wanted is the parsed arguments.
type wanted struct {
	dir      string
	clusters []string
	tenants  []users.Tenant
	removed  []string // such as "tenant=team-a"
	hosts    []string // further names of the servers
}

func main() {
	w, err := parse(os.Args[1:])
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "compose:", err)
		}
		os.Exit(2)
	}
	if err := w.make(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "compose:", err)
		os.Exit(1)
	}
}

func parse(args []string) (wanted, error) {
	var w wanted
	flags := flag.NewFlagSet("compose", flag.ContinueOnError)
	flags.Func("cluster", "`name` of a cluster whose services get keys; may be repeated (default \""+local+"\", where there is none yet)", func(name string) error {
		w.clusters = append(w.clusters, name)
		return nil
	})
	for kind, usage := range map[string]string{
		users.KindTenant:  "`name=queue,...`: a user who may submit to these queues and read their events; may be repeated",
		users.KindNamed:   "`name=queue,...`: a tenant who submits under their own name only; for those who do not trust each other",
		users.KindIntake:  "`cluster=queue,...`: the intake of a further cluster, whose users submit to these queues with kubectl; may be repeated",
		users.KindChecker: "`name`: the controller of the AdmissionCheck of that name; may be repeated",
	} {
		flags.Func(kind, usage, func(text string) error {
			t, err := users.ParseTenant(kind, text)
			w.tenants = append(w.tenants, t)
			return err
		})
	}
	flags.Func("remove", "`kind=name`: remove a cluster, tenant, checker or intake of an earlier run, and its keys; may be repeated", func(what string) error {
		w.removed = append(w.removed, what)
		return nil
	})
	flags.Func("host", "a `name` or address, beside those of the local stack, under which NATS and Postgres are reached; may be repeated", func(host string) error {
		w.hosts = append(w.hosts, host)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return w, err
	}
	if flags.NArg() != 1 {
		return w, fmt.Errorf("want one directory, got %d arguments", flags.NArg())
	}
	w.dir = flags.Arg(0)
	return w, nil
}

func (w wanted) make(out io.Writer) error {
	known, err := users.Read(w.dir)
	if err != nil {
		return err
	}
	for _, what := range w.removed {
		if err := known.Remove(out, what); err != nil {
			return err
		}
	}
	clusters := w.clusters
	if len(clusters)+len(known.Clusters) == 0 {
		clusters = []string{local}
	}
	known.Add(out, clusters, w.tenants)
	if err := known.Write(); err != nil {
		return err
	}
	server := func(name string) certificates.Wanted {
		return certificates.Wanted{Name: name, Hosts: append([]string{name, "localhost", "127.0.0.1"}, w.hosts...)}
	}
	// One certificate for all clients: it permits the connection, the nkey identifies the client.
	if err := certificates.Ensure(w.dir, server("nats"), server("postgres"), server("intake"), server("console"), certificates.Wanted{Name: "client"}); err != nil {
		return err
	}
	if err := tokens(w.dir, known.Tenants); err != nil {
		return err
	}
	return database(w.dir)
}
