package components

import (
	"cmp"
	"slices"
)

// atOnce is the number of parallel builds. A go command uses all processors during compilation, but not while
// it links or compiles a package that all others depend on. A second build fills these gaps.
const atOnce = 2

// lanes groups the components by family. The components of a family are built one after the other in the given
// order; in parallel they would compile their common packages twice. The family with the longest build begins,
// so that all end at about the same time.
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

// later returns the components of lanes that are not built from the beginning.
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

// cost returns the total cost of a list of components.
func cost(components []Component) int {
	sum := 0
	for _, c := range components {
		sum += c.cost
	}
	return sum
}
