package fault

// Edits is how many letters have to be added, left out or replaced to make one text of the
// other. It takes time in proportion to the product of their lengths, which the caller bounds.
func Edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			edits := diagonal
			if a[i] != b[j] {
				edits++
			}
			diagonal = row[j+1]
			row[j+1] = min(edits, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
