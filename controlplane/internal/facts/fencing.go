package facts

// Fenced reports whether the cluster is a two-node cluster with fencing: only Pacemaker runs its etcd and
// changes its members.
func (f *Facts) Fenced() bool { return f.ControlPlane.Spec.Fencing != nil }
