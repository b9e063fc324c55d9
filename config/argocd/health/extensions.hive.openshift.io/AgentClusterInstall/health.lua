local conditions = {}
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, c in ipairs(obj.status.conditions) do
    conditions[c.type] = c
  end
end

local function is(type, status, reason)
  local c = conditions[type]
  return c ~= nil and c.status == status and (reason == nil or c.reason == reason)
end

local function health(status, type)
  return { status = status, message = type .. ": " .. (conditions[type].message or conditions[type].reason) }
end

if obj.metadata.deletionTimestamp ~= nil then
  return { status = "Progressing", message = "waiting for assisted-service to deregister the cluster" }
end
if is("Failed", "True") then
  return health("Degraded", "Failed")
end
if is("Stopped", "True", "InstallationCancelled") then
  return health("Degraded", "Stopped")
end
if is("SpecSynced", "False", "InputError") then
  return health("Degraded", "SpecSynced")
end
if is("Completed", "True") then
  return { status = "Healthy", message = "the cluster is installed" }
end
if is("SpecSynced", "False") then
  return health("Progressing", "SpecSynced")
end
if is("LastInstallationPreparationFailed", "True") then
  return health("Degraded", "LastInstallationPreparationFailed")
end
if conditions.Completed == nil then
  return { status = "Progressing", message = "waiting for assisted-service to register the cluster" }
end
for _, type in ipairs({ "Validated", "RequirementsMet" }) do
  if is(type, "False") then
    return health("Progressing", type)
  end
end
if is("Completed", "False", "InstallationOnHold") then
  return health("Suspended", "Completed")
end
return health("Progressing", "Completed")
