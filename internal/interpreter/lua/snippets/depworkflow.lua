local keys = {
  configMapKeyRef = {"ConfigMap", "name"}, configMapRef = {"ConfigMap", "name"}, configMap = {"ConfigMap", "name"},
  secretKeyRef = {"Secret", "name"}, secretRef = {"Secret", "name"}, nodePublishSecretRef = {"Secret", "name"},
  persistentVolumeClaim = {"PersistentVolumeClaim", "claimName"},
}

-- A name with a {{parameter}} in it is not known yet.
local function known(add, kind, name)
  if type(name) == "string" and not string.find(name, "{{", 1, true) then
    add(kind, name)
  end
end

local function field(add, key, v)
  if keys[key] ~= nil then
    known(add, keys[key][1], child(v, keys[key][2]))
  elseif key == "secret" then
    known(add, "Secret", child(v, "secretName"))
    known(add, "Secret", child(v, "name"))
  elseif key == "serviceAccountName" then
    known(add, "ServiceAccount", v)
  elseif key == "imagePullSecrets" then
    if list(v) then
      for _, element in ipairs(v) do
        known(add, "Secret", child(element, "name"))
      end
    end
  elseif string.sub(key, -6) == "Secret" then
    known(add, "Secret", child(v, "name"))
  end
end

-- References are found by the names of fields: templates have containers, scripts, sidecars, artifacts and more.
local function walk(add, at, depth)
  if type(at) ~= "table" or depth > 100 then
    return
  end
  for key, v in pairs(at) do
    if type(key) == "string" then
      field(add, key, v)
    end
    walk(add, v, depth + 1)
  end
end

function GetDependencies(desiredObj)
  local found, add = references(child(child(desiredObj, "metadata"), "namespace"))
  walk(add, child(desiredObj, "spec"), 0)
  return found
end
