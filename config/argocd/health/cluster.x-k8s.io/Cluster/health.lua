-- Replaces the built-in check of Argo CD, for which a Cluster is healthy as soon as its phase is Provisioned. That is minutes
-- after it was applied, long before it is installed. This check uses the conditions of v1beta2, which an object of v1beta1
-- has in status.v1beta2.

-- Reasons of a control plane of this provider that is not available until the user acts. Cluster API also reports NotAvailable
-- before the control plane has reported anything.
local wrong = { InstallationFailed = true, NotAvailable = true, ConnectionDown = true, HealthUnknown = true }

local conditions, listed = {}, nil
if obj.status ~= nil then
  if obj.apiVersion == "cluster.x-k8s.io/v1beta1" then
    if obj.status.v1beta2 ~= nil then
      listed = obj.status.v1beta2.conditions
    end
  else
    listed = obj.status.conditions
  end
end
if listed ~= nil then
  for _, c in ipairs(listed) do
    conditions[c.type] = c
  end
end

local function is(type, status)
  return conditions[type] ~= nil and conditions[type].status == status
end

local function health(status, type)
  local c = conditions[type]
  if c.message == nil or c.message == "" then
    return { status = status, message = type .. ": " .. c.reason }
  end
  return { status = status, message = type .. ": " .. c.message }
end

if obj.spec ~= nil and obj.spec.paused == true or is("Paused", "True") then
  return { status = "Suspended", message = "the Cluster is paused" }
end
if obj.metadata.deletionTimestamp ~= nil then
  if is("Deleting", "True") then
    return health("Progressing", "Deleting")
  end
  return { status = "Progressing", message = "waiting for the deletion to start" }
end
if conditions.Available == nil or obj.status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "waiting for Cluster API to read the Cluster" }
end
if conditions.TopologyReconciled ~= nil and conditions.TopologyReconciled.reason == "ReconcileFailed" then
  return health("Degraded", "TopologyReconciled")
end
if not is("Available", "True") then
  local ours = obj.spec.controlPlaneRef ~= nil and obj.spec.controlPlaneRef.kind == "OpenshiftAssistedControlPlane"
  local reason = conditions.ControlPlaneAvailable ~= nil and conditions.ControlPlaneAvailable.reason
  if ours and reason and wrong[reason] and (reason ~= "NotAvailable" or is("ControlPlaneInitialized", "True")) then
    return health("Degraded", "ControlPlaneAvailable")
  end
  return health("Progressing", "Available")
end
if is("RollingOut", "True") then
  return health("Progressing", "RollingOut")
end
return { status = "Healthy", message = "control plane and workers are available" }
