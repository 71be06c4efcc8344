package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const isc = `Copyright (c) 2026 A Holder

Permission to use, copy, modify, and/or distribute this software for any
purpose with or without fee is hereby granted, provided that the above
copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH
REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY
AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM
LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR
OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR
PERFORMANCE OF THIS SOFTWARE.
`

const agpl = `This program is free software: you can redistribute it and/or modify
it under the terms of the GNU Affero General Public License as published by
the Free Software Foundation, either version 3 of the License, or
(at your option) any later version.

This program is distributed in the hope that it will be useful,
but WITHOUT ANY WARRANTY; without even the implied warranty of
MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the
GNU Affero General Public License for more details.

You should have received a copy of the GNU Affero General Public License
along with this program.  If not, see <https://www.gnu.org/licenses/>.
`

func TestOf(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file, text  string
		want, fault string
	}{
		"allowed":         {"LICENSE.md", isc, "ISC", ""},
		"not allowed":     {"COPYING", agpl, "", "not among the allowed"},
		"not recognised":  {"LICENSE", "You may look at it on Sundays.", "", "no licence is recognised"},
		"no file at all":  {"README", isc, "", "no licence is recognised"},
		"told in a jest":  {"LICENSE", strings.Repeat("You may look at it on Sundays. ", 100) + isc, "", "no licence is recognised"},
		"another's files": {"LICENSES_OTHERS", isc, "", "no licence is recognised"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, test.file), []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := of("example.org/m", dir)
			if got != test.want || (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) {
				t.Errorf("got %q, %v; want %q, %q", got, err, test.want, test.fault)
			}
		})
	}
}
