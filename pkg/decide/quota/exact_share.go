package quota

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"
)

// ExactShare is a Share that is compared as if it were not rounded. Nodes of weight zero, which
// all have MaxShare, are compared by what they use, as in Kueue.
type ExactShare struct {
	Share
	// part is the largest part of what the parent can lend, divided by the weight unless that is
	// zero. It has no bound: the Share of a node that uses very much has one.
	part fraction
}

// Compare orders the smaller share first.
func (s ExactShare) Compare(other ExactShare) int {
	if unweighted := s.Share == MaxShare; unweighted != (other.Share == MaxShare) {
		if unweighted {
			return 1
		}
		return -1
	}
	return s.part.compare(other.part)
}

// fraction is a number of 2^-64, the highest bits first: a whole number and what is beyond it. Amounts, and what a
// weight makes of them, have fewer than 157 bits.
type fraction [3]uint64

// partOf is amount / lendable / weight, rounded down; weight zero counts as one.
func partOf(amount, lendable, weightMilli int64) fraction {
	hi, lo := bits.Mul64(uint64(amount), defaultWeight)
	return fraction{hi, lo, 0}.per(lendable, weightMilli)
}

// pastPartOf is partOf of a past amount, in whole millionths: a past amount fades, and what is left
// of it after a long time decides nothing. The amount is taken as it is, so the result is the same
// on every machine.
func pastPartOf(amount float64, lendable, weightMilli int64) fraction {
	significand, exponent := math.Frexp(min(amount, math.MaxInt64))
	mantissa, shift := int64(math.Ldexp(significand, 53)), exponent-53+64 // in 2^-64
	millionths := new(big.Int).Mul(big.NewInt(mantissa), big.NewInt(defaultWeight*1_000_000))
	if shift >= 0 {
		millionths.Lsh(millionths, uint(shift))
	} else {
		millionths.Rsh(millionths, uint(-shift))
	}
	var scaled [24]byte
	millionths.FillBytes(scaled[:])
	var p fraction
	for i := range scaled {
		p[i/8] = p[i/8]<<8 | uint64(scaled[i])
	}
	p = p.per(lendable, weightMilli)
	p[2] = 0
	return p.over(1_000_000)
}

// per divides by what can be lent and by a weight.
func (p fraction) per(lendable, weightMilli int64) fraction {
	if weightMilli == 0 {
		weightMilli = defaultWeight
	}
	return p.over(uint64(lendable)).over(uint64(weightMilli))
}

// over divides by a number, rounded down.
func (p fraction) over(divisor uint64) (quotient fraction) {
	rest := uint64(0)
	for i, digit := range p {
		quotient[i], rest = bits.Div64(rest, digit, divisor)
	}
	return quotient
}

func (p fraction) plus(other fraction) (sum fraction) {
	carry := uint64(0)
	for i := len(p) - 1; i >= 0; i-- {
		sum[i], carry = bits.Add64(p[i], other[i], carry)
	}
	return sum
}

func (p fraction) compare(other fraction) int {
	return cmp.Or(cmp.Compare(p[0], other[0]), cmp.Compare(p[1], other[1]), cmp.Compare(p[2], other[2]))
}
