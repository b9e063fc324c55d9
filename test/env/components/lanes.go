package components

import (
	"cmp"
	"slices"
)

// atOnce is how many components are built at a time. One go command uses all processors while it has packages to
// compile, but not while it links, or compiles a package that all others wait for; a second one fills these gaps.
const atOnce = 2

// lanes orders what is to be built. Components of a family follow one another, in the order in which they are given: at
// the same time they would compile the packages that they have in common twice. The family that takes longest begins,
// so that all end together.
func lanes(components []Component) [][]Component {
	var lanes [][]Component
	for _, c := range components {
		i := slices.IndexFunc(lanes, func(lane []Component) bool { return c.family != "" && lane[0].family == c.family })
		if i < 0 {
			lanes = append(lanes, nil)
			i = len(lanes) - 1
		}
		lanes[i] = append(lanes[i], c)
	}
	slices.SortStableFunc(lanes, func(a, b []Component) int { return cmp.Compare(cost(b), cost(a)) })
	return lanes
}

// later are the components of lanes that are not built from the beginning.
func later(lanes [][]Component) []Component {
	var components []Component
	for i, lane := range lanes {
		if i < atOnce {
			lane = lane[1:]
		}
		components = append(components, lane...)
	}
	return components
}

// cost is that of all components of a list.
func cost(components []Component) int {
	sum := 0
	for _, c := range components {
		sum += c.cost
	}
	return sum
}
