package metal3

import "time"

// RestoreLabel is the label of objects that Velero restored, and the only trace of a restore on an object
// (pkg/restore/restore.go, v1.18).
const RestoreLabel = "velero.io/restore-name"

// RestoredWithoutHistory reports whether a BareMetalHost was restored from a backup without its status. The
// Bare Metal Operator has then registered the host again, after the creation of the object, and no status
// shows what runs on the server. A restored status has an earlier registration.
func RestoredWithoutHistory(host *Host) bool {
	if _, restored := host.Labels[RestoreLabel]; !restored {
		return false
	}
	registered, err := time.Parse(time.RFC3339, host.Status.History.Register.Start)
	return err != nil || !registered.Before(host.CreationTimestamp.Time)
}
