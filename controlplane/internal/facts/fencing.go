package facts

// Fenced reports whether the cluster is one of two nodes that fence each other: Pacemaker runs its etcd, and nobody
// else touches its members.
func (f *Facts) Fenced() bool { return f.ControlPlane.Spec.Fencing != nil }
