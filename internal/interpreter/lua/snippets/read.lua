local function malformed()
  error("malformed", 0)
end

-- An empty table may be an empty list or an empty object: Lua cannot tell.
local function object(v)
  return type(v) == "table" and v[1] == nil
end

local function list(v)
  return type(v) == "table" and (v[1] ~= nil or next(v) == nil)
end

local function whole(v, least, most)
  if type(v) ~= "number" or v ~= math.floor(v) or v < least or v > most then
    malformed()
  end
  return v + 0
end

-- A number from 2^53 on is too large: Lua would take it for its neighbour.
local function convert(v, want)
  if v == nil then
    return nil
  elseif want == "count" and list(v) then
    return #v
  elseif want == "int" or want == "count" then
    return whole(v, 0, 2147483647)
  elseif want == "long" then
    return whole(v, 0, 9007199254740991)
  elseif want == "partition" and type(v) ~= "string" then
    return whole(v, -2147483647, 2147483647)
  elseif want == "object" then
    if not object(v) then
      malformed()
    end
    return next(v) ~= nil or nil
  elseif want == "bool" then
    if type(v) ~= "boolean" then
      malformed()
    end
  elseif type(v) ~= "string" or (want == "partition" and v == "") then
    malformed()
  end
  return v
end

-- A step of a path is a key, or chooses the element of a list whose key "by" is "is".
local function lookup(at, path)
  for _, step in ipairs(path) do
    if at == nil then
      return nil
    elseif type(step) == "table" then
      if not list(at) then
        malformed()
      end
      local found = nil
      for _, element in ipairs(at) do
        if not object(element) then
          malformed()
        end
        if found == nil and element[step.by] == step.is then
          found = element
        end
      end
      at = found
    else
      if not object(at) then
        malformed()
      end
      at = at[step]
    end
  end
  return at
end
