package migrations_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"regexp"
	"testing"

	"muster.dev/muster/migrations"
)

// released pins the content of every migration, so that an old and a new installation
// have the same schema. A change of the schema is a new file.
var released = map[string]string{
	"0001_ledger.sql":       "62347504e17295e65702ef81d64f54da45011a1813e71733c63b75171295cef1",
	"0002_life.sql":         "62a1babcd50db8a83b65b61e02da049e7272cee0ee0add8115a3d92d3f50110a",
	"0003_hot_and_cold.sql": "4729546c845102cd278f1000516372c48c2b7fa495c83a5cc219796b377a69fa",
	"0004_moves.sql":        "b988234066ff44a9abc7ecd670a44601a07bcb1df227a175746950f210d36782",
	"0005_streams.sql":      "6d5e224591cebcbd44f4b52b3afcb5b11cbf2a7a8dc02f466f4aa7c6f9ebfd2c",
	"0006_quota.sql":        "0fa611b50220334b93b3e1c77f258911c1f38c5feb73b61a14f2d7929476bcbc",
	"0007_roles.sql":        "96277aa287086a1863206c3509296e7b7a6d4e745cdd93883ae5d1828aa7c266",
	"0008_decisions.sql":    "ba83b7711241a64ae23b0469c695ff664a928cb53640d80e6f1a64b1907ce9b3",
	"0009_applied.sql":      "7de4b6055b86f7c6788eb16fe23f32a6ce7c7604d43f75ca1656089bfafbfee3",
	"0010_net_guards.sql":   "e0053a2118dbc38e2c6a688a1a4f9f878a7a8c10a33b740b8fb0e75dd70af2f5",
	"0011_stolen_login.sql": "b7aeac7ba0d9f05f1cb297e629a5da83777e0fa889cf84f35a48479185501278",
	"0012_quarantine.sql":   "7f1ca85a2887296924216556d8ca3f7bff91731b60d14c076000a060a10d9219",
	"0013_moved_queues.sql": "cf9ea8e2635dd448d754f009c0dd19c4cb3689bcd0fd9d46a37a9887e8acb17f",
	"0014_past_usage.sql":   "40fc6d107a2154f24290ea4104f380391cf12873601d1cfbc06569a1674aa3ff",
	"0015_provisioning.sql": "50ee5f2085b3d42038b496172c16d0f1b13afe6fcce3aa963e9f1ac802331d9a",
	"0016_holds.sql":        "83bf486d782ea2752170671cf1ade357eb46c65e0ebf9299fccfc4214c0db781",
	"0017_asked.sql":        "af8b2029f5e16087f2565d9e3b19c53b79fabe4bf04b9e1ca0877854d61b479e",
	"0018_usage.sql":        "3cee6b4913c482314731036bd2c8da895fd9ef4b59a476459136e9a73ec2d664",
	"0019_labels.sql":       "4578c8839841a024f20e1e52b585a0c0d2cde53a36f21ebcb258e1a73de8d577",
	"0020_heard_again.sql":  "f5c42a13a40746cb26a6ad1e263493f398bf0725f4859ecb66d7be168bfb562a",
	"0021_estimates.sql":    "fafd0e3b003fd38ee1deb75e8cc2d1f262df243a4c8a94c09f8185f66628488a",
	"0022_budgets.sql":      "7339d67114276647664aa012103cac86ccd7e64f5da8e8e1a7145a40b4147e5b",
	"0023_saved.sql":        "b788df1e7c4c000e36469911877b7e492856fd90a04d77edcfe3fe1156064302",
	"0024_homes.sql":        "bb050259e2e3516946967915200d273c14a80dd40d5258bb2564ad2a27dc9c13",
}

func TestMigrationsAreNumberedWithoutHolesAndNeverEdited(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(released) {
		t.Errorf("%d migrations, but %d hashes are pinned here", len(files), len(released))
	}
	pattern := regexp.MustCompile(`^\d{4}_[a-z_]+\.sql$`)
	for i, name := range files {
		if !pattern.MatchString(name) || name[:4] != fmt.Sprintf("%04d", i+1) {
			t.Errorf("migration %q: want the number %04d and a name like 0001_subject.sql", name, i+1)
		}
		content, err := fs.ReadFile(migrations.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		if got := hex.EncodeToString(sum[:]); got != released[name] {
			t.Errorf("migration %s has hash %s, pinned is %q: released migrations are never edited", name, got, released[name])
		}
	}
}
