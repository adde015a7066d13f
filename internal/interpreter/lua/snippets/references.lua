local function child(v, key)
  if object(v) then
    return v[key]
  end
  return nil
end

local function elements(v, key)
  local found = child(v, key)
  if list(found) then
    return found
  end
  return {}
end

-- What has no namespace cannot be found in any: a cluster-scoped workload that does not say where its pods are.
local function references(namespace)
  local found, seen = {}, {}
  local function add(kind, name)
    if type(name) ~= "string" or name == "" or type(namespace) ~= "string" or namespace == "" then
      return
    elseif kind == "ServiceAccount" and name == "default" then
      return
    end
    local key = kind .. "/" .. name
    if not seen[key] then
      seen[key] = true
      found[#found + 1] = {apiVersion = "v1", kind = kind, namespace = namespace, name = name}
    end
  end
  return found, add
end
