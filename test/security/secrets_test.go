package security

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/s2"
	rbacv1 "k8s.io/api/rbac/v1"

	"muster.dev/muster/pkg/spec/workload"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/stack"
)

// withManifests are the tables that have what authors put into manifests, as
// SECURITY.md says; partitions begin with their names.
func withManifests() []string { return []string{"manifests", "archive", "outbox", "decisions"} }

// No table of Postgres has the content of a wrapped Secret, through whichever interface it
// came: it is refused. The value of a variable of a container is where SECURITY.md says
// that manifests are, and nowhere else.
func TestNoTableHasASecret(t *testing.T) {
	t.Parallel()
	mine := ownQueue("mine", "alice")
	mine.Submitters = nil
	c := newCallers(t, []queuemanager.Queue{mine}, "alice")
	queue := mine.Name
	if err := c.AddNodes(t.Context(), "cpu", 1, "cpu=16", "memory=64Gi"); err != nil {
		t.Fatal(err)
	}
	planted := func() string { return "planted-" + strings.ToLower(rand.Text()) }
	wrapping := func(name, password string) string {
		return stack.AppWrapper(mine.Namespaces[0], name, stack.RayCluster(name, 0, 0),
			"apiVersion: v1\nkind: Secret\nmetadata: {name: "+name+"}\nstringData: {password: "+password+"}\ndata: {key: "+base64.StdEncoding.EncodeToString([]byte(password))+"}\n")
	}
	const refusal = "Muster stores manifests in clear"
	secrets := map[string]string{"over NATS": planted(), "over HTTP": planted(), "by kubectl": planted()}

	if why := c.refused(c.submitTo(queue, wrapping("nats", secrets["over NATS"]))); !strings.Contains(why, refusal) {
		t.Errorf("over NATS it is refused because %q", why)
	}
	if status, answer := c.ask("alice", http.MethodPost, "/v1/queues/"+queue+"/workloads", wrapping("http", secrets["over HTTP"])); status/100 != 4 || !strings.Contains(answer, refusal) {
		t.Errorf("over HTTP the answer is %d %s", status, answer)
	}
	user := c.as("alice-"+c.Pool, rbacv1.PolicyRule{APIGroups: []string{"workload.codeflare.dev"}, Resources: []string{"appwrappers"}, Verbs: []string{"create", "get"}})
	labelled := fmt.Sprintf(`apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: kubectl, labels: {muster.dev/queue-name: %s}}
spec: {components: [{template: %s}, {template: {apiVersion: v1, kind: Secret, metadata: {name: kubectl}, stringData: {password: %s}}}]}
`, queue, stack.RayCluster("kubectl", 0, 0), secrets["by kubectl"])
	if why := c.wrapped(user, labelled); !strings.Contains(why, refusal) {
		t.Errorf("by kubectl it is refused because %q", why)
	}

	token := planted()
	taken := c.submitTo(queue, strings.Replace(stack.RayCluster("taken", 0, 0), `"image":`, `"env":[{"name":"TOKEN","value":"`+token+`"}],"image":`, 1))
	c.reaches(taken, workload.Admitted)

	inManifests := false
	for table, content := range c.tables() {
		for by, secret := range secrets {
			if strings.Contains(content, secret) || strings.Contains(content, base64.StdEncoding.EncodeToString([]byte(secret))) {
				t.Errorf("table %s has the Secret that came %s", table, by)
			}
		}
		if !strings.Contains(content, token) {
			continue
		}
		inManifests = inManifests || table == "manifests"
		if !slices.ContainsFunc(withManifests(), func(known string) bool { return table == known || strings.HasPrefix(table, known+"_") }) {
			t.Errorf("table %s has the value of a variable", table)
		}
	}
	if !inManifests {
		t.Error("table manifests does not have the value of a variable: the test does not see it")
	}
}

// tables returns every row of every table as text; what is compressed is expanded.
func (w *tenants) tables() map[string]string {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.database)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(w.t.Context())) }()
	rows, err := conn.Query(w.t.Context(), `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`)
	if err != nil {
		w.t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) < 15 {
		w.t.Fatalf("tables are %q, %v", names, err)
	}
	found, expanded := map[string]string{}, 0
	for _, name := range names {
		rows, err := conn.Query(w.t.Context(), `SELECT * FROM `+pgx.Identifier{name}.Sanitize())
		if err != nil {
			w.t.Fatal(err)
		}
		var all strings.Builder
		for rows.Next() {
			values, err := rows.Values()
			if err != nil {
				w.t.Fatal(err)
			}
			for _, value := range values {
				raw, isBytes := value.([]byte)
				if plain, err := s2.Decode(nil, raw); isBytes && err == nil {
					all.Write(plain)
					expanded++
				}
				fmt.Fprintf(&all, "%s %v\n", raw, value)
			}
		}
		if err := rows.Err(); err != nil {
			w.t.Fatalf("read table %s: %v", name, err)
		}
		found[name] = all.String()
	}
	if expanded == 0 {
		w.t.Error("nothing was compressed: the test does not see decisions")
	}
	return found
}
