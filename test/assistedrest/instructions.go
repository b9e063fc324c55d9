package assistedrest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/openshift/assisted-service/models"
	"k8s.io/utils/ptr"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

// Next implements [hosts.Service]: it polls and answers until there is something for the host itself to do.
func (s *Service) Next(ctx context.Context, agent hosts.Agent) (hosts.Instruction, error) {
	for {
		if err := s.wait(ctx); err != nil {
			return hosts.Instruction{}, err
		}
		steps, err := s.steps(ctx, agent)
		if err != nil {
			return hosts.Instruction{}, err
		}
		instruction, err := s.follow(ctx, agent, steps)
		if err != nil || instruction.Kind != "" {
			return instruction, err
		}
	}
}

func (s *Service) steps(ctx context.Context, agent hosts.Agent) (*models.Steps, error) {
	// The service compares the time of the host with its own.
	path := hostPath(agent.InfraEnvID, agent.HostID) + "/instructions?timestamp=" + strconv.FormatInt(time.Now().Unix(), 10)
	raw, err := s.get(ctx, s.agentEndpoint(agent.AgentConfig), path)
	if err != nil {
		return nil, fmt.Errorf("cannot get instructions: %w", err)
	}
	steps := &models.Steps{}
	if err := json.Unmarshal(raw, steps); err != nil {
		return nil, fmt.Errorf("cannot read instructions: %w", err)
	}
	return steps, nil
}

// follow answers the steps and returns the remaining ones for the host. An answer that is rejected does not block the
// others: the service requests it again.
func (s *Service) follow(ctx context.Context, agent hosts.Agent, steps *models.Steps) (hosts.Instruction, error) {
	instruction := hosts.Instruction{}
	var failures []error
	for _, step := range steps.Instructions {
		switch step.StepType {
		case models.StepTypeInstall:
			return s.installation(ctx, agent, step)
		case models.StepTypeStopInstallation:
			instruction.Kind = hosts.Stop
		case models.StepTypeInstallationDiskSpeedCheck, models.StepTypeContainerImageAvailability:
			ready, err := s.prepare(ctx, agent)
			if err != nil {
				failures = append(failures, err)
			}
			if !ready {
				continue
			}
		}
		if err := s.answer(ctx, agent, step); err != nil {
			failures = append(failures, err)
		}
	}
	if ptr.Deref(steps.PostStepAction, "") == models.StepsPostStepActionExit {
		instruction.Kind = hosts.Exit
	}
	return instruction, errors.Join(failures...)
}

// answer sends the reply of the host to a step. The service polls a real agent once a minute, and this agent many times
// each second. Therefore a reply that did not change is not sent again.
func (s *Service) answer(ctx context.Context, agent hosts.Agent, step *models.Step) error {
	reply, known, err := replyTo(step, agent)
	if err != nil {
		return err
	}
	s.mu.Lock()
	last, sent := s.answers[agent.HostID][step.StepType]
	first := !known && !s.unknown[step.StepType]
	if first {
		s.unknown[step.StepType] = true
	}
	s.mu.Unlock()
	if first {
		s.options.Log.Info("step without an answer", "step", step.StepType)
	}
	if sent && last.output == reply.Output && time.Since(last.sent) < refresh && !repeatedUntilAnswered(step.StepType) {
		return nil
	}
	path := hostPath(agent.InfraEnvID, agent.HostID) + "/instructions"
	if _, err := s.send(ctx, http.MethodPost, s.agentEndpoint(agent.AgentConfig), path, reply); err != nil {
		return fmt.Errorf("cannot answer step %s: %w", step.StepType, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if answers := s.answers[agent.HostID]; answers != nil {
		answers[step.StepType] = answer{output: reply.Output, sent: time.Now()}
	}
	return nil
}

// repeatedUntilAnswered are the steps that the service repeats only as long as it has no answer.
func repeatedUntilAnswered(kind models.StepType) bool {
	return kind == models.StepTypeInstallationDiskSpeedCheck || kind == models.StepTypeContainerImageAvailability
}

// prepare calls the hook for the preparation that is under way, once the service has generated the files of the cluster. It
// returns whether the hosts may go on.
func (s *Service) prepare(ctx context.Context, agent hosts.Agent) (ready bool, err error) {
	if s.options.Preparing == nil {
		return true, nil
	}
	id, err := s.clusterOf(ctx, agent)
	if err != nil || id == "" {
		return false, err
	}
	cluster, err := s.cluster(ctx, s.agentEndpoint(agent.AgentConfig), id)
	if err != nil {
		return false, err
	}
	preparation := cluster.LastInstallationPreparation
	if ptr.Deref(cluster.Status, "") != models.ClusterStatusPreparingForInstallation ||
		preparation.Status != models.LastInstallationPreparationStatusSuccess {
		return false, nil
	}
	s.preparing.Lock()
	defer s.preparing.Unlock()
	since := time.Time(cluster.StatusUpdatedAt)
	if s.prepared[id].Equal(since) {
		return true, nil
	}
	deployment, err := s.deployment(ctx, id)
	if err != nil {
		return false, err
	}
	if err := s.options.Preparing(ctx, Preparation{Deployment: deployment, ClusterID: id, Since: since}); err != nil {
		return false, fmt.Errorf("cannot prepare cluster %s: %w", deployment, err)
	}
	s.prepared[id] = since
	return true, nil
}

// clusterOf returns the id of the cluster that a host is bound to; empty: none.
func (s *Service) clusterOf(ctx context.Context, agent hosts.Agent) (string, error) {
	raw, err := s.get(ctx, s.agentEndpoint(agent.AgentConfig), "/v2/infra-envs/"+agent.InfraEnvID+"/hosts")
	if err != nil {
		return "", fmt.Errorf("cannot list the hosts of the InfraEnv: %w", err)
	}
	var list []*models.Host
	if err := json.Unmarshal(raw, &list); err != nil {
		return "", fmt.Errorf("cannot list the hosts of the InfraEnv: %w", err)
	}
	for _, host := range list {
		if host.ID != nil && host.ID.String() == agent.HostID && host.ClusterID != nil {
			return host.ClusterID.String(), nil
		}
	}
	return "", nil
}
