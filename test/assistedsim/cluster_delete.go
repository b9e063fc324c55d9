package assistedsim

import (
	"context"
	"fmt"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// releaseDeployment deletes the AgentClusterInstall first, and removes the finalizer of the ClusterDeployment
// when the AgentClusterInstall is deleted.
func (s *Simulator) releaseDeployment(ctx context.Context, cd *hivev1.ClusterDeployment, aci *hiveext.AgentClusterInstall) error {
	if aci != nil {
		if aci.DeletionTimestamp.IsZero() {
			if err := s.client.Delete(ctx, aci); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("cannot delete AgentClusterInstall: %w", err)
			}
			return nil // its deletion is watched
		}
		return s.releaseInstall(ctx, cd, aci)
	}
	if !controllerutil.ContainsFinalizer(cd, clusterDeploymentFinalizer) {
		return nil
	}
	base := cd.DeepCopy()
	controllerutil.RemoveFinalizer(cd, clusterDeploymentFinalizer)
	if err := s.client.Patch(ctx, cd, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot release ClusterDeployment: %w", err)
	}
	return nil
}

// releaseInstall cancels an installation, unbinds or deletes the Agents, forgets the cluster and removes the
// finalizer of the AgentClusterInstall. Installed hosts keep running.
func (s *Simulator) releaseInstall(ctx context.Context, cd *hivev1.ClusterDeployment, aci *hiveext.AgentClusterInstall) error {
	if !controllerutil.ContainsFinalizer(aci, clusterInstallFinalizer) {
		return nil // the finalizer of another client blocks it
	}
	key := types.NamespacedName{Namespace: aci.Namespace, Name: aci.Spec.ClusterDeploymentRef.Name}
	free, leave := s.cancel(key, cd != nil && cd.Spec.PreserveOnDelete)
	for _, name := range leave {
		agent := &Agent{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
		if err := s.client.Delete(ctx, agent); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete Agent %s: %w", name, err)
		}
	}
	for _, name := range free {
		if err := s.unbindAgent(ctx, name); err != nil {
			return err
		}
	}
	if len(leave) > 0 {
		return nil // each deleted Agent wakes the cluster
	}
	s.mu.Lock()
	delete(s.clusters, key)
	s.touchReferrers(key)
	s.touchCluster(key)
	s.mu.Unlock()
	base := aci.DeepCopy()
	controllerutil.RemoveFinalizer(aci, clusterInstallFinalizer)
	if err := s.client.Patch(ctx, aci, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot release AgentClusterInstall: %w", err)
	}
	return nil
}

// cancel stops a running installation and divides the hosts of the cluster: hosts to unbind, and hosts whose
// Agents are deleted.
func (s *Simulator) cancel(key types.NamespacedName, deleteAgents bool) (free, leave []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	started := false
	if c := s.clusters[key]; c != nil {
		c.deleting = true
		started = c.installingNow() || c.state == models.ClusterStatusError
		if started || c.state == models.ClusterStatusPreparingForInstallation {
			c.enter(models.ClusterStatusCancelled, infoClusterCanceled, 0)
		}
	}
	for name, h := range s.hosts {
		if h.cluster != key {
			continue
		}
		switch h.state {
		case models.HostStatusPreparingForInstallation, models.HostStatusPreparingSuccessful:
			h.enter(models.HostStatusKnown, infoHostCanceled, 0)
			s.touchHost(h)
		case models.HostStatusInstalling, models.HostStatusInstallingInProgress, models.HostStatusInstallingPendingUserAction,
			models.HostStatusInstalled, models.HostStatusError:
			if started && !h.dayTwo() {
				h.enter(models.HostStatusCancelled, infoHostCanceled, 0)
				s.touchHost(h)
			}
		}
		if deleteAgents || h.infraEnv.clusterRef == key {
			leave = append(leave, name)
		} else {
			free = append(free, name)
		}
	}
	return free, leave
}

// unbindAgent removes the cluster from the Agent's spec, and from the host before the Agent is reconciled
// again.
func (s *Simulator) unbindAgent(ctx context.Context, name types.NamespacedName) error {
	agent := &Agent{}
	if err := s.live.Get(ctx, name, agent); err != nil {
		return client.IgnoreNotFound(err)
	}
	base := agent.DeepCopy()
	agent.Spec.ClusterDeploymentName = nil
	if err := s.client.Patch(ctx, agent, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot unbind Agent %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hosts[name]; h != nil && h.bound() {
		h.wanted = types.NamespacedName{}
		s.unbind(h)
		s.touchHost(h)
	}
	return nil
}

// reconcileOrphans handles the AgentClusterInstalls whose ClusterDeployment does not exist.
func (s *Simulator) reconcileOrphans(ctx context.Context, key types.NamespacedName) error {
	orphans := &hiveext.AgentClusterInstallList{}
	if err := s.live.List(ctx, orphans, client.InNamespace(key.Namespace)); err != nil {
		return fmt.Errorf("cannot list AgentClusterInstalls: %w", err)
	}
	for i := range orphans.Items {
		aci := &orphans.Items[i]
		if aci.Spec.ClusterDeploymentRef.Name != key.Name {
			continue
		}
		if !aci.DeletionTimestamp.IsZero() {
			if err := s.releaseInstall(ctx, nil, aci); err != nil {
				return err
			}
			continue
		}
		missing := inputErrorf("ClusterDeployment with name '%s' in namespace '%s' not found", key.Name, key.Namespace)
		if err := s.publishUnavailable(ctx, aci, missing); err != nil {
			return err
		}
	}
	return nil
}
