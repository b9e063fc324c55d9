package metal3

import "time"

// RestoreLabel is on what Velero restored: the only trace of a restore on an object (pkg/restore/restore.go, v1.18).
const RestoreLabel = "velero.io/restore-name"

// RestoredWithoutHistory returns true for a BareMetalHost that came from a backup without its status: the Bare Metal
// Operator has registered the host again, after the object was created, and nothing shows what runs on the server. A
// status that is restored tells of a registration before.
func RestoredWithoutHistory(host *Host) bool {
	if _, restored := host.Labels[RestoreLabel]; !restored {
		return false
	}
	registered, err := time.Parse(time.RFC3339, host.Status.History.Register.Start)
	return err != nil || !registered.Before(host.CreationTimestamp.Time)
}
