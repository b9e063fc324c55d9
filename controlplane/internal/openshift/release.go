// Package openshift decides which releases of OpenShift and OKD, and which versions and names, a control plane may have.
package openshift

import (
	"fmt"

	"github.com/blang/semver/v4"
)

// minimum is the oldest release that the Agent-based installation through this provider supports.
var minimum = semver.MustParse("4.14.0")

// CheckSupported returns an error for releases that are too old. settings are those of the control plane.
func CheckSupported(v semver.Version, settings Settings) error {
	// Release candidates of the oldest release count as that release.
	if (semver.Version{Major: v.Major, Minor: v.Minor, Patch: v.Patch}).LT(minimum) {
		return fmt.Errorf("version %s is not supported: set %s to %s or newer", v, settings.Release, minimum)
	}
	return nil
}
